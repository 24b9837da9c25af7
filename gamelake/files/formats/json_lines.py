"""Files with an event per line, in the JSON that games send to the ingest service."""

import re
from collections.abc import Iterator, Sequence

import msgspec
import pyarrow as pa
from google.protobuf.descriptor import Descriptor

from gamelake.contracts.reasons import DeadLetterReason
from gamelake.files.formats.events import Events, Framer
from gamelake.files.formats.json_columns import JsonColumns
from gamelake.wire.decoder import Rejects
from gamelake.wire.json_types import CHECKED_TIME, struct_of

_NAME = re.compile(rb'"([^"\\]*)"\s*:')


class JsonLines:
    """Reads lines of JSON; whether a line is an event is msgspec's word, by the contract's types.

    A line with a field that the contract lacks is not kept: nobody knows whether it says who a person is.
    """

    def __init__(self, message: Descriptor, schema_id: int) -> None:
        self._framer = Framer(message, schema_id)
        self._columns = JsonColumns(message, self._framer.schema)
        self._decoder = msgspec.json.Decoder(struct_of(message, CHECKED_TIME))
        self._names = frozenset(_names(message, set()))

    def read(self, lines: Sequence[bytes]) -> Events:
        """The events of some lines, none of which is empty."""
        if self._all_fit(lines):
            return Events(self._values(lines))
        rejects = Rejects()
        for row, line in enumerate(lines):
            self._judge(row, line, rejects)
        return self._with_rejects(lines, rejects)

    def _all_fit(self, lines: Sequence[bytes]) -> bool:
        try:
            return len(self._decoder.decode_lines(b"\n".join(lines))) == len(lines)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False

    def _judge(self, row: int, line: bytes, rejects: Rejects) -> None:
        try:
            self._decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            if self._is_foreign(line):
                rejects.add([row], DeadLetterReason.UNKNOWN_FIELD, "the event has a field that the contract lacks")
            else:
                rejects.add([row], DeadLetterReason.UNDECODABLE, f"not an event in JSON: {_first_words(error)}")

    def _is_foreign(self, line: bytes) -> bool:
        return any(name not in self._names for name in _NAME.findall(line))

    def _with_rejects(self, lines: Sequence[bytes], rejects: Rejects) -> Events:
        kept: list[bytes | None] = list(lines)
        for row, reason in zip(rejects.rows, rejects.reasons, strict=True):
            if reason is DeadLetterReason.UNKNOWN_FIELD:
                kept[row] = None
        good = sorted(set(range(len(lines))) - set(rejects.rows))
        framed = self._values([lines[row] for row in good]) if good else ()
        for row, value in zip(good, framed, strict=True):
            kept[row] = value.as_py()
        return Events(pa.array(kept, pa.binary()), rejects)

    def _values(self, lines: Sequence[bytes]) -> pa.BinaryArray:
        return self._framer.values(self._columns.read(pa.array(lines, pa.binary()).cast(pa.string())))


def _names(message: Descriptor, seen: set[str]) -> Iterator[bytes]:
    """The names of a message's fields, and of those inside."""
    seen.add(message.full_name)
    for field in message.fields:
        yield field.name.encode()
        if field.message_type is not None and field.message_type.full_name not in seen:
            yield from _names(field.message_type, seen)


def _first_words(error: Exception) -> str:
    # Nothing of the line itself: what msgspec says has names and types alone, Unicode errors quote bytes.
    return "no UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
