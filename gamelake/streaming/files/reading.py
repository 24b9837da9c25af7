"""Files to events: each read whole before any of its events counts, small ones together, since each call costs."""

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

_PACKED = frozenset({".gz", ".gzip", ".zst", ".zstd"})
_PARQUET = b"PAR1"


class FileFormat(StrEnum):
    """How the events of a file are written."""

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
    """The format of an unpacked file; what says nothing else is lines of JSON, as Firehose writes them."""
    if content.startswith(_PARQUET):
        return FileFormat.PARQUET
    suffixes = [suffix.lower() for suffix in PurePosixPath(key).suffixes if suffix.lower() not in _PACKED]
    return _BY_SUFFIX.get(suffixes[-1], FileFormat.JSON_LINES) if suffixes else FileFormat.JSON_LINES


_ROWS = 50_000


@dataclass(frozen=True, slots=True)
class FileContent:
    """A file's unpacked content, by its place in the list of those that a task reads."""

    place: int
    key: str
    content: bytes


@dataclass(frozen=True, slots=True)
class FileRows:
    """Events of one or more files: of each the place of its file and its row there, counted from 0."""

    events: FileEvents
    places: Ints
    numbers: Ints


@dataclass(frozen=True, slots=True)
class UnreadableFile:
    """A file that can't be read as what it says it is, and why; none of its events counts."""

    place: int
    detail: str


@dataclass(slots=True)
class _Lines:
    """Lines that are read together."""

    lines: list[bytes] = field(default_factory=list)
    places: list[Ints] = field(default_factory=list)
    numbers: list[Ints] = field(default_factory=list)

    def add(self, place: int, first: int, lines: list[bytes]) -> None:
        self.lines += lines
        self.places.append(np.full(len(lines), place, np.int64))
        self.numbers.append(np.arange(first, first + len(lines)))


class FileReader:
    """Reads files of the contract's event."""

    def __init__(self, message: Descriptor, schema_id: int) -> None:
        self._framer = Framer(message, schema_id)
        self._json = JsonLines(message, schema_id)

    def read(self, files: Iterable[FileContent]) -> Iterator[FileRows | UnreadableFile]:
        """The events of files, some at a time; the rows of a file are in order."""
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
            yield UnreadableFile(file.place, str(error))
            return
        first = 0
        for events in parts:
            count = len(events.values)
            yield FileRows(events, np.full(count, file.place, np.int64), np.arange(first, first + count))
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
            waiting.add(file.place, first, lines[first : first + _ROWS])
            if len(waiting.lines) >= _ROWS:
                yield self._flush(waiting)

    def _flush(self, waiting: _Lines) -> FileRows:
        rows = FileRows(self._json.read(waiting.lines), np.concatenate(waiting.places), np.concatenate(waiting.numbers))
        waiting.lines, waiting.places, waiting.numbers = [], [], []
        return rows
