"""Reads files of events by their format; small files of JSON lines are read together: each call has a fixed cost.

Either all events of a file are ingested or none, so a file is read to its end before its first event is returned. A
file with more than 32 MiB of content is read twice, so that no task has a large decompressed file in memory.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePosixPath
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from google.protobuf.descriptor import Descriptor

from gamelake.ledger.coordinates import MOST_EVENTS
from gamelake.model.arrays import Ints
from gamelake.schemas.framing import HEADER_BYTES
from gamelake.streaming.files.decompression import pieces
from gamelake.streaming.files.formats import delimited, json_lines, parquet
from gamelake.streaming.files.formats.events import (
    PART_BYTES,
    PART_RECORDS,
    FileEvents,
    Framer,
    TooLargeFileError,
    UnreadableFileError,
)
from gamelake.streaming.files.formats.json_lines import JsonLines
from gamelake.streaming.files.refusals import RefusedObject, refusal

_COMPRESSED = frozenset({".gz", ".gzip", ".zst", ".zstd"})
_PARQUET = b"PAR1"

_KEPT_BYTES = 32 * 2**20
# The memory of a Python `bytes` object in addition to its content.
_PER_LINE = 56
# The memory of a framed event in an array in addition to its body: an offset and a header.
_PER_VALUE = 4 + HEADER_BYTES
# An event has an id, a time, a name and a game. Records that are shorter on average are other data, such as zeros.
_SHORTEST_EVENT = 8
_FEW_RECORDS = 1_000

# A part of a file: lines of JSON, or framed events.
_Part: TypeAlias = list[bytes] | pa.BinaryArray


class FileFormat(StrEnum):
    """The format of a file of events."""

    JSON_LINES = "json_lines"
    DELIMITED = "delimited"
    PARQUET = "parquet"


_BY_SUFFIX = {
    ".binpb": FileFormat.DELIMITED,
    ".pb": FileFormat.DELIMITED,
    ".delimited": FileFormat.DELIMITED,
    ".parquet": FileFormat.PARQUET,
}


def format_of(key: str, content: bytes) -> FileFormat:
    """Determine the format of a file from its content and suffix; JSON lines by default, as Firehose writes them.

    Args:
        key: of the object.
        content: the beginning of the decompressed content.
    """
    if content.startswith(_PARQUET):
        return FileFormat.PARQUET
    suffixes = [suffix.lower() for suffix in PurePosixPath(key).suffixes if suffix.lower() not in _COMPRESSED]
    return _BY_SUFFIX.get(suffixes[-1], FileFormat.JSON_LINES) if suffixes else FileFormat.JSON_LINES


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as it is stored.

    Attributes:
        index: of the file in the list of a task's objects.
        key: of the object.
        stored: the stored content.
        limit: the largest size of the decompressed content in bytes.
    """

    index: int
    key: str
    stored: memoryview
    limit: int

    def pieces(self) -> Iterator[bytes]:
        """Yield the decompressed content in order, in pieces of up to 1 MiB."""
        return pieces(self.stored, self.limit)


@dataclass(frozen=True, slots=True)
class FileRows:
    """Events of one or more files.

    Attributes:
        events: the events, with the rejected rows.
        indexes: the index of the file (int64), one per row of `events`.
        numbers: the row's number in its file, from 0 (int64), one per row of `events`.
    """

    events: FileEvents
    indexes: Ints
    numbers: Ints


@dataclass(slots=True)
class _Lines:
    """Lines of several files that are read together."""

    lines: list[bytes] = field(default_factory=list)
    indexes: list[Ints] = field(default_factory=list)
    numbers: list[Ints] = field(default_factory=list)
    size: int = 0

    def add(self, index: int, first: int, lines: list[bytes]) -> None:
        self.lines += lines
        self.indexes.append(np.full(len(lines), index, np.int64))
        self.numbers.append(np.arange(first, first + len(lines)))
        self.size += sum(map(len, lines))

    def is_full(self) -> bool:
        return len(self.lines) >= PART_RECORDS or self.size >= PART_BYTES


class FileReader:
    """Reads files with events of the games contract; for one thread.

    Args:
        message: the event of the contract.
        schema_id: of the schema in the registry.
    """

    def __init__(self, message: Descriptor, schema_id: int) -> None:
        self._framer = Framer(message, schema_id)
        self._json = JsonLines(message, schema_id)

    def read(self, files: Iterable[StoredFile]) -> Iterator[FileRows | RefusedObject]:
        """Yield the events of files in parts, and the files that can't be read.

        The rows of each file are in order. JSON lines of several files may share a part, so files of other formats may
        be yielded before earlier files of JSON lines.

        Raises:
            Exception: an outage; the files must be read again.
        """
        waiting = _Lines()
        for file in files:
            try:
                yield from self._read(file, waiting)
            except Exception as error:
                yield refusal(file.index, error)
        if waiting.lines:
            yield self._flush(waiting)

    def _read(self, file: StoredFile, waiting: _Lines) -> Iterator[FileRows]:
        first = 0
        for part in self._checked(file):
            for start in range(0, len(part), PART_RECORDS):
                some = part[start : start + PART_RECORDS]
                if isinstance(some, list):
                    waiting.add(file.index, first, some)
                    if waiting.is_full():
                        yield self._flush(waiting)
                else:
                    numbers = np.arange(first, first + len(some))
                    yield FileRows(FileEvents(some), np.full(len(some), file.index, np.int64), numbers)
                first += len(some)

    def _checked(self, file: StoredFile) -> Iterable[_Part]:
        """Read a file to its end, and return its parts.

        Raises:
            UnreadableFileError: the file does not have events.
            TooLargeFileError: the file has more events or bytes than the limits.
        """
        kept: list[_Part] = []
        records = memory = 0
        for part in self._parts(file):
            records += len(part)
            if records > MOST_EVENTS:
                raise TooLargeFileError(f"the file has more than {MOST_EVENTS} events: split it")
            memory += _memory_of(part)
            if memory <= _KEPT_BYTES:
                kept.append(part)
            else:
                kept.clear()
        return kept if memory <= _KEPT_BYTES else self._parts(file)

    def _parts(self, file: StoredFile) -> Iterator[_Part]:
        head = next(file.pieces(), b"")
        kind = format_of(file.key, head)
        if kind is FileFormat.PARQUET:
            yield from parquet.read(_whole(file), self._framer, file.limit)
        elif kind is FileFormat.DELIMITED:
            yield from _dense(delimited.read(file.pieces(), self._framer))
        else:
            yield from _dense(json_lines.lines(file.pieces()))

    def _flush(self, waiting: _Lines) -> FileRows:
        rows = FileRows(
            self._json.read(waiting.lines), np.concatenate(waiting.indexes), np.concatenate(waiting.numbers)
        )
        waiting.lines, waiting.indexes, waiting.numbers, waiting.size = [], [], [], 0
        return rows


def _whole(file: StoredFile) -> memoryview:
    """Return the complete content of a Parquet file, which usually has no compression around it."""
    if bytes(file.stored[:4]) == _PARQUET:
        return file.stored
    return memoryview(b"".join(file.pieces()))


def _memory_of(part: _Part) -> int:
    return sum(map(len, part)) + _PER_LINE * len(part) if isinstance(part, list) else part.nbytes


def _dense(parts: Iterable[_Part]) -> Iterator[_Part]:
    """Yield parts, and check at the end that their records are long enough to be events.

    Raises:
        UnreadableFileError: the records are too short on average.
    """
    records = size = 0
    for part in parts:
        records += len(part)
        size += sum(map(len, part)) if isinstance(part, list) else part.nbytes - _PER_VALUE * len(part)
        yield part
    if records > _FEW_RECORDS and size < _SHORTEST_EVENT * records:
        raise UnreadableFileError(f"the file's records have less than {_SHORTEST_EVENT} bytes on average")
