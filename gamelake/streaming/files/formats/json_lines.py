"""Files with one JSON event per line, as games send them to the ingest gateway."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import msgspec
import numpy as np
import pyarrow as pa
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.schemas.decoder import Rejects
from gamelake.schemas.framing import Ints
from gamelake.schemas.json_types import CHECKED_TIME, struct_of
from gamelake.streaming.files.formats.events import FileEvents, Framer

_TIMESTAMP = "google.protobuf.Timestamp"
# A column that no message has: names of Protobuf begin with a letter or an underscore.
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
# JSON is what DuckDB is to leave as it is, for a second step.
_AS_MAP = """json_transform({0}, '"MAP(VARCHAR, VARCHAR)"')"""
_AS_TIME = "TRY_CAST(upper({0}) AS TIMESTAMPTZ)"


class JsonLineColumns:
    """Converts valid JSON lines of a message to its columns."""

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
        """The lines as columns of the message, one row for each line, and the rows that lack a value of their line.

        Such a line has a map with a key twice, or another spelling of a time than DuckDB reads.
        """
        self._connection.register("lines", pa.table({"line": lines}))
        found = self._connection.sql(self._query).to_arrow_table().combine_chunks()
        self._connection.unregister("lines")
        unread = np.flatnonzero(found[_UNREAD].fill_null(False).to_numpy())
        return found.drop_columns(_UNREAD).to_batches()[0], unread


def _structure(message: Descriptor) -> dict[str, Any]:
    """The message as the structure argument of json_transform."""
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
    """An SQL condition for each map and each time: the line has it, and its column does not."""
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
    """An SQL expression for each field; a missing field has its Protobuf default."""
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


class JsonLines:
    """Reads JSON lines; msgspec validates them by the contract's types.

    A line with a field that the contract lacks is not kept, as the field may be personal data.
    """

    def __init__(self, message: Descriptor, schema_id: int) -> None:
        self._framer = Framer(message, schema_id)
        self._columns = JsonLineColumns(message, self._framer.schema)
        self._decoder = msgspec.json.Decoder(struct_of(message, CHECKED_TIME))
        self._names = frozenset(_names(message, set()))

    def read(self, lines: Sequence[bytes]) -> FileEvents:
        """The events of lines, none of which is empty, in their order."""
        if self._all_fit(lines):
            return FileEvents(self._values(lines))
        rejects = Rejects()
        for row, line in enumerate(lines):
            self._check(row, line, rejects)
        return self._with_rejects(lines, rejects)

    def _all_fit(self, lines: Sequence[bytes]) -> bool:
        try:
            return len(self._decoder.decode_lines(b"\n".join(lines))) == len(lines)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False

    def _check(self, row: int, line: bytes, rejects: Rejects) -> None:
        try:
            self._decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            if self._is_foreign(line):
                rejects.add([row], DeadLetterReason.UNKNOWN_FIELD, "the event has a field that the contract lacks")
            else:
                rejects.add([row], DeadLetterReason.UNDECODABLE, f"not an event in JSON: {_first_words(error)}")

    def _is_foreign(self, line: bytes) -> bool:
        return any(name not in self._names for name in _NAME.findall(line))

    def _with_rejects(self, lines: Sequence[bytes], rejects: Rejects) -> FileEvents:
        kept: list[bytes | None] = list(lines)
        for row, reason in zip(rejects.rows, rejects.reasons, strict=True):
            if reason is DeadLetterReason.UNKNOWN_FIELD:
                kept[row] = None
        good = sorted(set(range(len(lines))) - set(rejects.rows))
        framed = self._values([lines[row] for row in good]) if good else ()
        for row, value in zip(good, framed, strict=True):
            kept[row] = value.as_py()
        return FileEvents(pa.array(kept, pa.binary()), rejects)

    def _values(self, lines: Sequence[bytes]) -> pa.BinaryArray:
        columns, unread = self._columns.read(_texts(lines))
        if len(unread):
            # Written again they have one spelling of times, and of a key that comes twice the last value.
            plain = list(lines)
            for row in unread:
                plain[row] = msgspec.json.encode(self._decoder.decode(plain[row]))
            columns, _ = self._columns.read(_texts(plain))
        return self._framer.values(columns)


def _texts(lines: Sequence[bytes]) -> pa.StringArray:
    return pa.array(lines, pa.binary()).cast(pa.string())


def _names(message: Descriptor, seen: set[str]) -> Iterator[bytes]:
    """The names of a message's fields, also nested ones."""
    seen.add(message.full_name)
    for field in message.fields:
        yield field.name.encode()
        if field.message_type is not None and field.message_type.full_name not in seen:
            yield from _names(field.message_type, seen)


def _first_words(error: Exception) -> str:
    # No content of the line: messages of msgspec have only names and types, but Unicode errors quote bytes.
    return "no UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
