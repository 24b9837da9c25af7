"""Looks for texts in everything that a platform has written: files, objects, records; says where and never what."""

import gzip
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from gamelake.privacy.search_terms import Hit, SearchTerms
from gamelake.storage.store import Store

_PARQUET, _SQLITE, _GZIP, _ZSTD = b"PAR1", b"SQLite format 3\0", b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_DEPTH = 3
_ROWS = 10_000

Unpack = Callable[[bytes], Iterator[bytes]]


class UnreadableError(Exception):
    """A file that looks packed can't be unpacked, so that not all of it was seen."""


def decompressed(content: bytes, depth: int = _DEPTH) -> Iterator[bytes]:
    """What stands in a file besides its own bytes, nothing if it is not packed.

    Raises:
        UnreadableError: it begins like a packed file, and is none.
    """
    unpack = next((unpack for magic, unpack in _PACKED.items() if content.startswith(magic)), None)
    if unpack is None or not depth:
        return
    inner = b""
    try:
        for part in unpack(content):
            inner = inner or part
            yield part
    except (pa.ArrowException, OSError, EOFError, zlib.error, ValueError) as error:
        raise UnreadableError(type(error).__name__) from error
    if unpack is not _parquet:
        yield from decompressed(inner, depth - 1)


def sqlite_rows(file: Path) -> Iterator[bytes]:
    """All values of all tables of an SQLite file, nothing of any other file.

    A value may be spread over pages of the file, where its bytes don't stand together.

    Raises:
        UnreadableError: it can't be opened as what it says it is.
    """
    with file.open("rb") as opened:
        if opened.read(len(_SQLITE)) != _SQLITE:
            return
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as database:
            database.text_factory = bytes
            tables = [
                name.decode() for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            ]
            for table in tables:
                yield from _rows(database, table)
    except sqlite3.Error as error:
        raise UnreadableError(type(error).__name__) from error


def _rows(database: sqlite3.Connection, table: str) -> Iterator[bytes]:
    quoted = table.replace('"', '""')
    cursor = database.execute(f'SELECT * FROM "{quoted}"')  # noqa: S608 # a table of the file itself, quoted
    while rows := cursor.fetchmany(_ROWS):
        yield b"\0".join(value for row in rows for value in row if isinstance(value, bytes))


def _parquet(content: bytes) -> Iterator[bytes]:
    file = pq.ParquetFile(pa.BufferReader(content))
    for group in range(file.num_row_groups):
        for column in file.read_row_group(group).columns:
            for chunk in column.chunks:
                yield from _values(chunk)


def _values(array: pa.Array) -> Iterator[bytes]:
    """The bytes of all texts in an array, one behind the other."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        yield from _values(array.dictionary)
    elif pa.types.is_struct(kind):
        for child in range(kind.num_fields):
            yield from _values(array.field(child))
    elif pa.types.is_map(kind):
        yield from _values(array.keys)
        yield from _values(array.items)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _values(array.values)
    elif _is_text(kind):
        yield from (buffer.to_pybytes() for buffer in array.buffers()[-1:] if buffer is not None)


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def _gzip(content: bytes) -> Iterator[bytes]:
    yield gzip.decompress(content)


def _zstd(content: bytes) -> Iterator[bytes]:
    stream = pa.CompressedInputStream(pa.BufferReader(content), "zstd")
    yield stream.read()


_PACKED: dict[bytes, Unpack] = {_PARQUET: _parquet, _GZIP: _gzip, _ZSTD: _zstd}


_PART = 4 << 20
_UNPACKED_AT_ONCE = 512 << 20
_MOST_FOUND = 1_000


class ScanFinding(msgspec.Struct, frozen=True, order=True):
    """A text, by its number, that stands somewhere in some form."""

    needle: int
    form: str
    place: str


class Scan(msgspec.Struct, kw_only=True):
    """What was looked at, what was found (the first thousand), and what could not be looked at."""

    needles: int
    files: int = 0
    records: int = 0
    bytes: int = 0
    unpacked_bytes: int = 0
    findings: int = 0
    found: list[ScanFinding] = []
    unscanned: list[str] = []


class Scanner:
    """Looks through one thing after the other."""

    def __init__(self, needles: SearchTerms) -> None:
        self._needles = needles
        self._found: set[ScanFinding] = set()
        self.scan = Scan(needles=needles.count)

    def folder(self, path: Path) -> None:
        """All files of a folder, or one file; a file that is gone when its turn comes is no file any more."""
        if not path.exists():
            self.scan.unscanned.append(f"{path}: there is no such file or folder")
            return
        for file in _files(path, self.scan.unscanned):
            place = self._named(str(file))
            try:
                self._file(file, place)
            except FileNotFoundError:
                continue
            except (OSError, UnreadableError) as error:
                self.scan.unscanned.append(f"{place}: {error}")

    def store(self, store: Store) -> None:
        """All objects of a lakehouse."""
        for path in store.paths(""):
            place = self._named(f"{store.location.uri}/{path}")
            content = store.get(path)
            if content is not None:
                self.scan.files += 1
                self.parts([content], place)
                self._unpacked(content, place)

    def parts(self, parts: Iterable[bytes], place: str) -> None:
        """Bytes that come in parts."""
        self.note(self._needles.in_stream(self._counted(parts)), place)

    def note(self, hits: set[Hit], place: str) -> None:
        """Remember what was found somewhere."""
        new = {ScanFinding(hit.needle, hit.form.value, place) for hit in hits} - self._found
        self._found |= new
        self.scan.findings += len(new)
        self.scan.found += sorted(new)[: _MOST_FOUND - len(self.scan.found)]

    def hits(self, data: bytes) -> set[Hit]:
        """What stands in some bytes."""
        self.scan.bytes += len(data)
        return self._needles.in_bytes(data)

    def _named(self, path: str) -> str:
        """A path, unless something stands in it that must not be told; that it does is a finding."""
        hits = self._needles.in_bytes(path.encode())
        if not hits:
            return path
        place = f"{Path(path).anchor}... (a path of {len(path)} characters)"
        self.note(hits, f"the name of {place}")
        return place

    def _file(self, file: Path, place: str) -> None:
        self.scan.files += 1
        with file.open("rb") as opened:
            self.parts(iter(lambda: opened.read(_PART), b""), place)
        for rows in sqlite_rows(file):
            self._note_unpacked(rows, place)
        if file.stat().st_size <= _UNPACKED_AT_ONCE:
            self._unpacked(file.read_bytes(), place)
        else:
            self.scan.unscanned.append(f"{place}: too large to be unpacked")

    def _unpacked(self, content: bytes, place: str) -> None:
        try:
            for part in decompressed(content):
                self._note_unpacked(part, place)
        except UnreadableError as error:
            self.scan.unscanned.append(f"{place}: {error}")

    def _note_unpacked(self, part: bytes, place: str) -> None:
        self.scan.unpacked_bytes += len(part)
        self.note(self._needles.in_bytes(part), f"{place}, unpacked")

    def _counted(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        for part in parts:
            self.scan.bytes += len(part)
            yield part


def _files(path: Path, unscanned: list[str]) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for folder, _, names in os.walk(path, onerror=lambda error: unscanned.append(f"{path}: {error}")):
        yield from (file for name in sorted(names) if (file := Path(folder) / name).is_file())
