"""Scans files, objects and records for search terms; findings name the place, never the term.

Bytes on a disk need not show their content, so each file is scanned as it is, and decompressed as its readers see it:
columns of Parquet, rows of SQLite, gzip and zstd.
"""

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

from gamelake.objects.store import Store
from gamelake.scans.search_terms import Hit, SearchTerms

_PART = 4 << 20
_DECOMPRESSED_AT_ONCE = 512 << 20
_MOST_FOUND = 1_000
_PARQUET, _SQLITE, _GZIP, _ZSTD = b"PAR1", b"SQLite format 3\0", b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_DEPTH = 3
_ROWS = 10_000

Decompress = Callable[[bytes], Iterator[bytes]]


class UnreadableError(Exception):
    """A compressed file can't be decompressed, so that not all of it was scanned."""


def decompressed(content: bytes, depth: int = _DEPTH) -> Iterator[bytes]:
    """Yield the decompressed content of a file in parts; nothing if it is not compressed.

    Raises:
        UnreadableError: it starts like a compressed file, and is not one.
    """
    decompress = next((decompress for magic, decompress in _DECOMPRESSORS.items() if content.startswith(magic)), None)
    if decompress is None or not depth:
        return
    inner = b""
    try:
        for part in decompress(content):
            inner = inner or part
            yield part
    except (pa.ArrowException, OSError, EOFError, zlib.error, ValueError) as error:
        raise UnreadableError(type(error).__name__) from error
    if decompress is not _parquet:
        yield from decompressed(inner, depth - 1)


def sqlite_rows(file: Path) -> Iterator[bytes]:
    """Yield all values of all tables of an SQLite file; nothing for another file.

    In the file a value may be split over pages, so that its bytes are not adjacent.

    Raises:
        UnreadableError: it can't be opened as an SQLite file.
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
    """The data buffers of all string and binary values in an array, nested ones included."""
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


_DECOMPRESSORS: dict[bytes, Decompress] = {_PARQUET: _parquet, _GZIP: _gzip, _ZSTD: _zstd}


class ScanFinding(msgspec.Struct, frozen=True, order=True):
    """A term, by its number, that was found at a place in an encoding."""

    term: int
    encoding: str
    place: str


class Scan(msgspec.Struct, kw_only=True):
    """The result: what was scanned, the findings (the first thousand in `found`), and what could not be scanned."""

    terms: int
    files: int = 0
    records: int = 0
    bytes: int = 0
    decompressed_bytes: int = 0
    findings: int = 0
    found: list[ScanFinding] = []
    unscanned: list[str] = []


class Scanner:
    """Scans one thing after the other; `scan` has the result so far."""

    def __init__(self, terms: SearchTerms) -> None:
        self._terms = terms
        self._found: set[ScanFinding] = set()
        self.scan = Scan(terms=terms.count)

    def folder(self, path: Path) -> None:
        """Scan all files of a folder, or one file; files that are deleted meanwhile are skipped."""
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
        """Scan all objects of a lakehouse."""
        for path in store.paths(""):
            place = self._named(f"{store.location.uri}/{path}")
            content = store.get(path)
            if content is not None:
                self.scan.files += 1
                self.parts([content], place)
                self._decompressed(content, place)

    def parts(self, parts: Iterable[bytes], place: str) -> None:
        """Scan bytes that come in parts."""
        self.note(self._terms.in_stream(self._counted(parts)), place)

    def note(self, hits: set[Hit], place: str) -> None:
        """Record what was found at a place."""
        new = {ScanFinding(hit.term, hit.encoding.value, place) for hit in hits} - self._found
        self._found |= new
        self.scan.findings += len(new)
        self.scan.found += sorted(new)[: _MOST_FOUND - len(self.scan.found)]

    def hits(self, data: bytes) -> set[Hit]:
        """Return the terms in some bytes."""
        self.scan.bytes += len(data)
        return self._terms.in_bytes(data)

    def _named(self, path: str) -> str:
        """A printable path: one that has a term in it is masked, and is a finding itself."""
        hits = self._terms.in_bytes(path.encode())
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
            self._note_decompressed(rows, place)
        if file.stat().st_size <= _DECOMPRESSED_AT_ONCE:
            self._decompressed(file.read_bytes(), place)
        else:
            self.scan.unscanned.append(f"{place}: too large to be decompressed")

    def _decompressed(self, content: bytes, place: str) -> None:
        try:
            for part in decompressed(content):
                self._note_decompressed(part, place)
        except UnreadableError as error:
            self.scan.unscanned.append(f"{place}: {error}")

    def _note_decompressed(self, part: bytes, place: str) -> None:
        self.scan.decompressed_bytes += len(part)
        self.note(self._terms.in_bytes(part), f"{place}, decompressed")

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
