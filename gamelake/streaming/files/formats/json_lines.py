"""Files with one JSON event per line, as games send them to the ingest gateway."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import duckdb
import msgspec
import numpy as np
import pyarrow as pa
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from gamelake.model.arrays import Ints
from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.schemas.decoder import Rejects
from gamelake.schemas.json_types import CHECKED_TIME, parse_time, struct_of
from gamelake.streaming.files.formats.events import (
    FIRST_RECORDS,
    LARGEST_EVENT,
    FileEvents,
    Framer,
    UnreadableFileError,
)
from gamelake.streaming.outages import OUTAGES

_TIMESTAMP = "google.protobuf.Timestamp"
# A column name that no message has: Protobuf names begin with a letter or an underscore.
_UNREAD = "?"
_KINDS = {
    FieldDescriptor.TYPE_STRING: "VARCHAR",
    FieldDescriptor.TYPE_BOOL: "BOOLEAN",
    FieldDescriptor.TYPE_DOUBLE: "DOUBLE",
    FieldDescriptor.TYPE_FLOAT: "FLOAT",
    FieldDescriptor.TYPE_INT32: "INTEGER",
    FieldDescriptor.TYPE_SINT32: "INTEGER",
    FieldDescriptor.TYPE_SFIXED32: "INTEGER",
    FieldDescriptor.TYPE_INT64: "BIGINT",
    FieldDescriptor.TYPE_SINT64: "BIGINT",
    FieldDescriptor.TYPE_SFIXED64: "BIGINT",
}
_DEFAULTS = {"VARCHAR": "''", "BOOLEAN": "false"}

_NAME = re.compile(rb'"([^"\\]*)"\s*:')
# DuckDB leaves a field of type JSON unchanged, for a second step.
_AS_MAP = """json_transform({0}, '"MAP(VARCHAR, VARCHAR)"')"""
_AS_TIME = "TRY_CAST(upper({0}) AS TIMESTAMPTZ)"


# Accepts any object, and leaves its values undecoded.
_ANY_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])


def lines(pieces: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield the lines of a file's pieces in order, without empty ones, as one list per piece.

    Raises:
        UnreadableFileError: the file does not have JSON lines: none of its first lines is an object, most of its lines
            do not begin like one, or a line is longer than the largest event.
    """
    first: list[bytes] = []
    is_checked = False
    count = others = 0
    for found in _split(pieces):
        if not is_checked:
            first += found[:FIRST_RECORDS]
            is_checked = any(map(_is_object, first))
            if not is_checked and len(first) >= FIRST_RECORDS:
                break
        count += len(found)
        others += sum(not line.lstrip().startswith(b"{") for line in found)
        yield found
    if first and not is_checked:
        raise UnreadableFileError(f"none of the first {len(first)} lines is an object in JSON")
    if count > FIRST_RECORDS and others > count // 2:
        raise UnreadableFileError(f"{others} of the {count} lines are not objects in JSON")


def _split(pieces: Iterable[bytes]) -> Iterator[list[bytes]]:
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        if len(rest) > LARGEST_EVENT:
            raise UnreadableFileError(f"a line has more than {LARGEST_EVENT} bytes")
        yield [line for line in whole if line.strip()]
    if rest.strip():
        yield [rest]


def _is_object(line: bytes) -> bool:
    try:
        _ANY_OBJECT.decode(line)
    except Exception:  # a line can make the parser raise any error
        return False
    return True


class JsonLineColumns:
    """Converts valid JSON lines of a message to its columns; for one thread.

    Args:
        message: of the contract.
        schema: the columns of the message.
    """

    def __init__(self, message: Descriptor, schema: pa.Schema) -> None:
        self._schema = schema
        self._connection = duckdb.connect(config={"threads": 1})
        self._connection.execute("SET TimeZone = 'UTC'")
        structure = json.dumps(_structure(message)).replace("'", "''")
        columns = ", ".join(f'{each} AS "{name}"' for name, each in _fields(message, "event"))
        unread = " OR ".join(_unread(message, "event")) or "false"
        self._query = f"""
            SELECT {columns}, {unread} AS "{_UNREAD}"
            FROM (SELECT json_transform(line::JSON, '{structure}') AS event FROM lines)
        """  # noqa: S608 # names of the contract

    def read(self, lines: pa.StringArray) -> tuple[pa.RecordBatch, Ints]:
        """Convert lines (string) to columns of the message.

        Returns:
            The columns, one row per line in order; and the numbers of rows that lack a value of their line (int64,
            ascending). Such a line has a map with a repeated key, or a time in a format that DuckDB does not read.
        """
        self._connection.register("lines", pa.table({"line": lines}))
        found = self._connection.sql(self._query).to_arrow_table().combine_chunks()
        self._connection.unregister("lines")
        unread = np.flatnonzero(found[_UNREAD].fill_null(False).to_numpy())
        return found.drop_columns(_UNREAD).to_batches()[0], unread


def _structure(message: Descriptor) -> dict[str, Any]:
    """Describe the message as the structure argument of json_transform."""
    return {field.name: _kind(field) for field in message.fields}


def _kind(field: FieldDescriptor) -> Any:  # noqa: ANN401 # a text, an object or a list of one
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        return "JSON"
    if inner is None:
        one: Any = "VARCHAR" if field.enum_type is not None else _KINDS[field.type]
    else:
        one = "VARCHAR" if inner.full_name == _TIMESTAMP else _structure(inner)
    return [one] if field.is_repeated else one


def _unread(message: Descriptor, parent: str) -> Iterator[str]:
    """Yield an SQL condition for each map and each time: the line has a value, and its column has none."""
    for field in message.fields:
        inner, place = field.message_type, f'{parent}."{field.name}"'
        if inner is None:
            continue
        if inner.full_name == _TIMESTAMP or inner.GetOptions().map_entry:
            read = (_AS_TIME if inner.full_name == _TIMESTAMP else _AS_MAP).format(place)
            yield f"({place} IS NOT NULL AND {read} IS NULL)"
        else:
            yield from _unread(inner, place)


def _fields(message: Descriptor, parent: str) -> Iterator[tuple[str, str]]:
    """Yield the name and an SQL expression of each field; a missing field has its Protobuf default."""
    for field in message.fields:
        place = f'{parent}."{field.name}"'
        yield field.name, _filled(field, place)


def _filled(field: FieldDescriptor, place: str) -> str:
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        return f"coalesce({_AS_MAP.format(place)}, MAP {{}}::MAP(VARCHAR, VARCHAR))"
    if field.is_repeated:
        return f"coalesce({place}, [])"
    if inner is not None:
        if inner.full_name == _TIMESTAMP:
            return _AS_TIME.format(place)
        members = ", ".join(f'"{name}" := {each}' for name, each in _fields(inner, place))
        return f"CASE WHEN {place} IS NOT NULL THEN struct_pack({members}) END"
    if field.enum_type is not None:
        place = _numbered(field.enum_type, place)
    kind = "INTEGER" if field.enum_type is not None else _KINDS[field.type]
    return place if field.has_presence else f"coalesce({place}, {_DEFAULTS.get(kind, '0')})"


def _numbered(enum: EnumDescriptor, place: str) -> str:
    cases = " ".join(f"WHEN '{value.name}' THEN {value.number}::INTEGER" for value in enum.values)
    return f"CASE {place} {cases} END"


class _Time:
    """A time that is truncated to the microsecond, as at the gateway; msgspec would round it."""

    # Not a dataclass: msgspec would read its fields from a JSON object.
    def __init__(self, moment: datetime) -> None:
        self._moment = moment

    @classmethod
    def of(cls, _: type, text: object) -> "_Time":
        """Return the time of a text, for msgspec."""
        return cls(parse_time(text))

    def plain(self) -> str:
        """Return the text of the time, for msgspec."""
        return self._moment.isoformat()


class JsonLines:
    """Reads JSON lines, after msgspec has validated them against the contract's types; for one thread.

    A line with a field that the contract lacks is not kept, because the field may be personal data.

    Args:
        message: the event of the contract.
        schema_id: of the schema in the registry.
    """

    def __init__(self, message: Descriptor, schema_id: int) -> None:
        self._framer = Framer(message, schema_id)
        self._columns = JsonLineColumns(message, self._framer.schema)
        self._decoder = msgspec.json.Decoder(struct_of(message, CHECKED_TIME))
        self._careful = msgspec.json.Decoder(struct_of(message, _Time), dec_hook=_Time.of)
        self._message = message
        self._names = frozenset(_names(message, set()))

    def read(self, lines: Sequence[bytes]) -> FileEvents:
        """Read the events of lines, none of which may be empty.

        Returns:
            One value per line (binary), in order, and the rejected lines.
        """
        rejects = Rejects()
        if not self._all_fit(lines):
            for row, line in enumerate(lines):
                self._check(row, line, rejects)
        if not rejects.rows:
            try:
                return FileEvents(self._values(lines))
            except OUTAGES:
                raise
            except Exception:  # one of the lines raises it
                return self._with_rejects(lines, rejects)
        return self._with_rejects(lines, rejects)

    def _all_fit(self, lines: Sequence[bytes]) -> bool:
        try:
            return len(self._decoder.decode_lines(b"\n".join(lines))) == len(lines)
        except Exception:  # a line can make the parser raise any error
            return False

    def _check(self, row: int, line: bytes, rejects: Rejects) -> None:
        try:
            self._careful.decode(line)
        except Exception as error:
            if self._is_foreign(line):
                rejects.add([row], DeadLetterReason.UNKNOWN_FIELD, "the event has a field that the contract lacks")
            else:
                rejects.add([row], DeadLetterReason.UNDECODABLE, f"not an event in JSON: {_without_values(error)}")

    def _is_foreign(self, line: bytes) -> bool:
        try:
            event = msgspec.json.decode(line)
        except Exception:  # truncated, or not JSON
            return any(name not in self._names for name in _NAME.findall(line))
        return _has_unknown_field(self._message, event)

    def _with_rejects(self, lines: Sequence[bytes], rejects: Rejects) -> FileEvents:
        kept: list[bytes | None] = list(lines)
        for row, reason in zip(rejects.rows, rejects.reasons, strict=True):
            if reason is DeadLetterReason.UNKNOWN_FIELD:
                kept[row] = None
        good = sorted(set(range(len(lines))) - set(rejects.rows))
        for row, value in zip(good, self._values_or_errors([lines[row] for row in good]), strict=True):
            if isinstance(value, Exception):
                detail = f"not an event in JSON: {_without_values(value)}"
                rejects.add([row], DeadLetterReason.UNDECODABLE, detail)
            else:
                kept[row] = value
        return FileEvents(pa.array(kept, pa.binary()), _in_order(rejects))

    def _values_or_errors(self, lines: Sequence[bytes]) -> list[bytes | Exception]:
        """Return the value of each line, or the error that it causes; errors are rare, so they are found by halving."""
        if not lines:
            return []
        try:
            return list(self._values(lines).to_pylist())
        except OUTAGES:
            raise
        except Exception as error:
            if len(lines) == 1:
                return [error]
        half = len(lines) // 2
        return self._values_or_errors(lines[:half]) + self._values_or_errors(lines[half:])

    def _values(self, lines: Sequence[bytes]) -> pa.BinaryArray:
        columns, unread = self._columns.read(_texts(lines))
        if len(unread):
            # Encoded again, they have one format of times, and only the last value of a repeated key.
            plain = list(lines)
            for row in unread:
                plain[row] = msgspec.json.encode(self._careful.decode(plain[row]), enc_hook=_Time.plain)
            columns, _ = self._columns.read(_texts(plain))
        return self._framer.values(columns)


def _texts(lines: Sequence[bytes]) -> pa.StringArray:
    return pa.array(lines, pa.binary()).cast(pa.string())


def _names(message: Descriptor, seen: set[str]) -> Iterator[bytes]:
    """Yield the names of a message's fields, with those of nested messages."""
    seen.add(message.full_name)
    for field in message.fields:
        yield field.name.encode()
        if field.message_type is not None and field.message_type.full_name not in seen:
            yield from _names(field.message_type, seen)


def _has_unknown_field(message: Descriptor | None, value: object) -> bool:
    """Return True if an object has a field that its message lacks; the keys of a map are not fields."""
    if isinstance(value, list):
        return any(_has_unknown_field(message, each) for each in value)
    if not isinstance(value, dict):
        return False
    if message is None:
        return bool(value)
    fields = message.fields_by_name
    return any(name not in fields or _has_unknown_inside(fields[name], inner) for name, inner in value.items())


def _has_unknown_inside(field: FieldDescriptor, value: object) -> bool:
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        entries = list(value.values()) if isinstance(value, dict) else value
        return _has_unknown_field(None, entries)
    is_message = inner is not None and inner.full_name != _TIMESTAMP
    return _has_unknown_field(inner if is_message else None, value)


def _in_order(rejects: Rejects) -> Rejects:
    order = sorted(range(len(rejects.rows)), key=rejects.rows.__getitem__)
    return Rejects(
        [rejects.rows[place] for place in order],
        [rejects.reasons[place] for place in order],
        [rejects.details[place] for place in order],
    )


def _without_values(error: Exception) -> str:
    """Return the error of a line without any content of the line."""
    if not isinstance(error, msgspec.DecodeError):
        return "no UTF-8" if isinstance(error, UnicodeDecodeError) else type(error).__name__
    # msgspec's text names types and fields of the contract, but quotes an invalid name of an enumeration.
    what, at, place = str(error).rpartition(" - at `$")
    return f"Invalid enum value{at}{place}" if what.startswith("Invalid enum value") else str(error)
