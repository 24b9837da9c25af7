"""What files hold once they are unpacked: columns of Parquet, rows of SQLite, what gzip and zstd have packed.

Bytes on a disk need not show what stands in them; each file is looked at as it is and as its reader sees it.
"""

import gzip
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

_PARQUET, _SQLITE, _GZIP, _ZSTD = b"PAR1", b"SQLite format 3\0", b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_DEPTH = 3
_PART = 4 << 20
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
