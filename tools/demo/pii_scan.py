"""Scans every text of every row that a run has written for personal data, which only the vault may have."""

import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gamelake.ledger.manifests import BatchManifest

# Compiling a regular expression of many texts is slow, so each use of it reads many bytes.
_BYTES_AT_ONCE = 32 * 2**20


def tables_with(texts: Sequence[str], lakehouse: Path, manifests: Iterable[BatchManifest]) -> list[str]:
    """Return the tables in which a row of these batches contains one of the texts, in any column."""
    files: dict[str, list[Path]] = {}
    for manifest in manifests:
        for entry in manifest.tables:
            files.setdefault(entry.table, []).extend(lakehouse / entry.table / file.path for file in entry.files)
    if not texts:
        return []
    pattern = "|".join(re.escape(text) for text in texts)
    with ThreadPoolExecutor() as threads:
        found = threads.map(partial(_stands_in, pattern), files.values())
        return sorted(table for table, holds in zip(files, found, strict=True) if holds)


def _stands_in(pattern: str, files: Iterable[Path]) -> bool:
    waiting: list[pa.Array] = []
    size = 0
    for texts in (texts for file in files for texts in _texts_of(file)):
        waiting.append(_in_a_row(texts))
        size += texts.nbytes
        if size > _BYTES_AT_ONCE:
            if _matches(pattern, waiting):
                return True
            waiting, size = [], 0
    return bool(waiting) and _matches(pattern, waiting)


def _matches(pattern: str, columns: Sequence[pa.Array]) -> bool:
    return bool(pc.any(pc.match_substring_regex(pa.concat_arrays(columns), pattern)).as_py())


def _in_a_row(texts: pa.Array) -> pa.LargeBinaryArray:
    """All bytes of a column as one value, without copying."""
    bare = texts.cast(pa.large_binary())
    _, offsets, data = bare.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[[bare.offset, bare.offset + len(bare)]]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), 1, [None, pa.py_buffer(ends), data])


def _texts_of(file: Path) -> Iterator[pa.Array]:
    # Most files are small: threads would cost more than they save.
    for column in pq.ParquetFile(file).read(use_threads=False).columns:
        yield from _texts(column.combine_chunks())


def _texts(column: pa.Array) -> Iterator[pa.Array]:
    """The text and binary columns nested in a column."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind):
        yield column
    elif pa.types.is_struct(kind):
        for child in column.flatten():
            yield from _texts(child)
    elif pa.types.is_map(kind):
        yield from _texts(column.keys)
        yield from _texts(column.items)
    elif pa.types.is_list(kind):
        yield from _texts(column.flatten())
