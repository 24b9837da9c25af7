"""Parquet files with the contract's fields as columns, nested messages as structs.

A column of a few bytes can expand to any size, because a dictionary repeats a value for each row. So texts are read as
dictionaries, measured, and expanded in slices.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gamelake.ledger.coordinates import MOST_EVENTS
from gamelake.model.arrays import Ints
from gamelake.streaming.files.formats.conforming import Conformer
from gamelake.streaming.files.formats.events import (
    LARGEST_EVENT,
    PART_BYTES,
    Framer,
    TooLargeFileError,
    UnreadableFileError,
)

_ROWS = 8_192
# The size of a value in a column of numbers, in bytes.
_WIDTH = 8
# The limits of values in lists and maps: per row of a row group on average, and for a small group.
_VALUES_PER_ROW, _FEW_VALUES = 32, 2**20


def read(content: memoryview, framer: Framer, limit: int) -> Iterator[pa.BinaryArray]:
    """Yield the framed events (binary) of a file in order, in arrays of up to 8,192 rows and 8 MiB.

    Args:
        content: of the file.
        framer: encodes the events.
        limit: the largest size of the expanded columns in bytes.

    Raises:
        UnreadableFileError: the file is not Parquet, or has a column with an unknown name or another type.
        TooLargeFileError: its columns have more than `limit` bytes.
    """
    conformer = Conformer(framer.message, framer.schema)
    expanded = 0
    for rows in _batches(content, limit):
        sizes = _row_bytes(rows)
        expanded += int(sizes.sum())
        if expanded > limit:
            raise TooLargeFileError(f"the file's columns have more than {limit} bytes")
        if len(sizes) and sizes.max() > LARGEST_EVENT:
            raise UnreadableFileError(f"a row has more than {LARGEST_EVENT} bytes")
        for start, end in _slices(sizes):
            part = rows.take(pa.array(np.arange(start, end)))
            yield framer.values(conformer.conformed(_expanded(part)))


def _batches(content: memoryview, limit: int) -> Iterator[pa.RecordBatch]:
    try:
        buffer = pa.py_buffer(content)
        metadata = pq.ParquetFile(pa.BufferReader(buffer)).metadata
        _check_sizes(metadata, limit)
        file = pq.ParquetFile(pa.BufferReader(buffer), read_dictionary=_texts(metadata))
        yield from file.iter_batches(_ROWS)
    except (pa.ArrowException, OSError) as error:
        # Arrow's text quotes names of columns here, but no values.
        raise UnreadableFileError(f"not the contract's events in Parquet: {error}") from None


def _check_sizes(metadata: pq.FileMetaData, limit: int) -> None:
    if metadata.num_rows > MOST_EVENTS:
        raise TooLargeFileError(f"the file has more than {MOST_EVENTS} events: split it")
    size = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        size += sum(group.column(place).total_uncompressed_size for place in range(group.num_columns))
        most = max((group.column(place).num_values for place in range(group.num_columns)), default=0)
        if most > _VALUES_PER_ROW * group.num_rows + _FEW_VALUES:
            raise UnreadableFileError(f"a column has {most} values in {group.num_rows} rows")
    if size > limit:
        raise TooLargeFileError(f"the file's columns have more than {limit} bytes")


def _texts(metadata: pq.FileMetaData) -> list[str]:
    """Return the paths of the text columns."""
    columns = [metadata.schema.column(place) for place in range(metadata.num_columns)]
    return [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]


def _slices(sizes: Ints) -> Iterator[tuple[int, int]]:
    """Yield the first row and the end of slices of 8 MiB; a larger row is a slice of its own."""
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        before = ends[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(ends, before + PART_BYTES, side="right")))
        yield start, end
        start = end


def _row_bytes(rows: pa.RecordBatch) -> Ints:
    """Return the expanded size of each row in bytes (int64)."""
    sizes = np.zeros(len(rows), np.int64)
    for column in rows.columns:
        sizes += _bytes_of(column)
    return sizes


def _bytes_of(array: pa.Array) -> Ints:
    kind = array.type
    if pa.types.is_dictionary(kind):
        lengths = pc.fill_null(pc.binary_length(array.dictionary), 0)
        return _as_ints(pc.take(lengths, array.indices)) + _WIDTH
    if pa.types.is_struct(kind):
        return np.sum([_bytes_of(child) for child in array.flatten()], axis=0, dtype=np.int64) + np.zeros(
            len(array), np.int64
        )
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        counts = _counts(array)
        total = np.concatenate([[0], np.cumsum(_bytes_of(_entries(array)))])
        ends = np.cumsum(counts)
        return np.asarray(total[ends] - total[ends - counts], np.int64)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _as_ints(pc.binary_length(array)) + _WIDTH
    return np.full(len(array), _WIDTH, np.int64)


def _as_ints(array: pa.Array) -> Ints:
    return np.asarray(pc.fill_null(array, 0).to_numpy(zero_copy_only=False), np.int64)


def _counts(array: pa.Array) -> Ints:
    """Return the number of entries of each list or map (int64); 0 for a null."""
    offsets = array.offsets.to_numpy()
    return np.where(array.is_valid().to_numpy(zero_copy_only=False), np.diff(offsets), 0).astype(np.int64)


def _entries(array: pa.Array) -> pa.Array:
    """Return the entries of all lists or maps, without those under a null."""
    return array.flatten() if pa.types.is_list(array.type) else array.cast(_as_list(array.type)).flatten()


def _as_list(kind: pa.MapType) -> pa.ListType:
    return pa.list_(pa.struct([kind.key_field, kind.item_field]))


def _expanded(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows with plain texts in place of dictionaries."""
    return pa.RecordBatch.from_arrays([_plain(column) for column in rows.columns], names=rows.schema.names)


def _plain(array: pa.Array) -> pa.Array:
    kind = array.type
    if pa.types.is_dictionary(kind):
        return array.dictionary_decode()
    if pa.types.is_struct(kind):
        children = [_plain(child) for child in array.flatten()]
        return pa.StructArray.from_arrays(children, names=_names(kind), mask=array.is_null())
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        offsets = pa.array(np.concatenate([[0], np.cumsum(_counts(array))]), pa.int32())
        entries = _plain(_entries(array))
        if pa.types.is_list(kind):
            return pa.ListArray.from_arrays(offsets, entries, mask=array.is_null())
        keys, items = entries.flatten()
        return pa.MapArray.from_arrays(offsets, keys, items, mask=array.is_null())
    return array


def _names(fields: Iterable[pa.Field]) -> Sequence[str]:
    return [field.name for field in fields]
