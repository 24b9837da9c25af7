"""Reads files of events by their format; small files of JSON lines are read together, as each call has a fixed cost."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePosixPath

import numpy as np
from google.protobuf.descriptor import Descriptor

from gamelake.schemas.framing import Ints
from gamelake.streaming.files.coordinates import MOST_EVENTS
from gamelake.streaming.files.formats import delimited, parquet
from gamelake.streaming.files.formats.events import FileEvents, Framer, UnreadableFileError
from gamelake.streaming.files.formats.json_lines import JsonLines

_COMPRESSED = frozenset({".gz", ".gzip", ".zst", ".zstd"})
_PARQUET = b"PAR1"

_ROWS = 50_000


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
    """The format of a decompressed file, by content and suffix; JSON lines by default, as Firehose writes them."""
    if content.startswith(_PARQUET):
        return FileFormat.PARQUET
    suffixes = [suffix.lower() for suffix in PurePosixPath(key).suffixes if suffix.lower() not in _COMPRESSED]
    return _BY_SUFFIX.get(suffixes[-1], FileFormat.JSON_LINES) if suffixes else FileFormat.JSON_LINES


@dataclass(frozen=True, slots=True)
class FileContent:
    """The decompressed content of a file, with its index in the list of a task's objects."""

    index: int
    key: str
    content: bytes


@dataclass(frozen=True, slots=True)
class FileRows:
    """Events of one or more files; `indexes` and `numbers` (int64, one per event): the file and its row, from 0."""

    events: FileEvents
    indexes: Ints
    numbers: Ints


@dataclass(frozen=True, slots=True)
class UnreadableFile:
    """A file that can't be read in its format; none of its events is ingested."""

    index: int
    detail: str


@dataclass(slots=True)
class _Lines:
    """Lines of several files that are read together."""

    lines: list[bytes] = field(default_factory=list)
    indexes: list[Ints] = field(default_factory=list)
    numbers: list[Ints] = field(default_factory=list)

    def add(self, index: int, first: int, lines: list[bytes]) -> None:
        self.lines += lines
        self.indexes.append(np.full(len(lines), index, np.int64))
        self.numbers.append(np.arange(first, first + len(lines)))


class FileReader:
    """Reads files of events of the games contract."""

    def __init__(self, message: Descriptor, schema_id: int) -> None:
        self._framer = Framer(message, schema_id)
        self._json = JsonLines(message, schema_id)

    def read(self, files: Iterable[FileContent]) -> Iterator[FileRows | UnreadableFile]:
        """The events of files in parts; the rows of each file are in order."""
        waiting = _Lines()
        for file in files:
            if format_of(file.key, file.content) is FileFormat.JSON_LINES:
                yield from self._add_lines(file, waiting)
            else:
                yield from self._rows(file)
        if waiting.lines:
            yield self._flush(waiting)

    def _rows(self, file: FileContent) -> Iterator[FileRows | UnreadableFile]:
        try:
            parts = self._parts(file)
        except UnreadableFileError as error:
            yield UnreadableFile(file.index, str(error))
            return
        first = 0
        for events in parts:
            count = len(events.values)
            yield FileRows(events, np.full(count, file.index, np.int64), np.arange(first, first + count))
            first += count

    def _parts(self, file: FileContent) -> Iterable[FileEvents]:
        if format_of(file.key, file.content) is FileFormat.PARQUET:
            return parquet.read(file.content, self._framer)
        events = delimited.read(file.content, self._framer)
        if len(events.values) > MOST_EVENTS:
            raise UnreadableFileError(f"the file has more than {MOST_EVENTS} events: split it")
        return (events,)

    def _add_lines(self, file: FileContent, waiting: _Lines) -> Iterator[FileRows]:
        lines = [line for line in file.content.split(b"\n") if line.strip()]
        for first in range(0, len(lines), _ROWS):
            waiting.add(file.index, first, lines[first : first + _ROWS])
            if len(waiting.lines) >= _ROWS:
                yield self._flush(waiting)

    def _flush(self, waiting: _Lines) -> FileRows:
        rows = FileRows(
            self._json.read(waiting.lines), np.concatenate(waiting.indexes), np.concatenate(waiting.numbers)
        )
        waiting.lines, waiting.indexes, waiting.numbers = [], [], []
        return rows
