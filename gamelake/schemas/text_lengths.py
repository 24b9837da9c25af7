"""Finds texts that are longer than the contract allows, in the columns of many events at once."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gamelake.contract.games import TextLengths
from gamelake.model.arrays import Ints


def too_long_texts(array: pa.Array, path: str, lengths: TextLengths, *, with_bytes: bool) -> Iterator[tuple[str, Ints]]:
    """Find the elements of an array that are, or have inside them, a text over its limit.

    Args:
        array: of any type.
        path: of its field in the contract.
        lengths: the limits by path; all keys and values of a map, and all values of a list, have one path.
        with_bytes: bytes are texts too.

    Yields:
        The path of a text, and the places (int64, ascending) at which it is too long.
    """
    kind = array.type
    if not len(array):
        return
    if kind in ((pa.string(), pa.binary()) if with_bytes else (pa.string(),)):
        sizes = np.diff(offsets_of(array))
        if sizes.max() > lengths.of(path):
            yield path, np.flatnonzero(sizes > lengths.of(path))
    elif pa.types.is_struct(kind):
        for number, field in enumerate(kind):
            yield from too_long_texts(array.field(number), f"{path}.{field.name}", lengths, with_bytes=with_bytes)
    else:
        for values in _values(array):
            yield from _too_long_in_lists(array, values, path, lengths, with_bytes)


def _values(array: pa.Array) -> tuple[pa.Array, ...]:
    if pa.types.is_map(array.type):
        return array.keys, array.items
    return (array.values,) if pa.types.is_list(array.type) else ()


def _too_long_in_lists(
    lists: pa.Array, values: pa.Array, path: str, lengths: TextLengths, with_bytes: bool
) -> Iterator[tuple[str, Ints]]:
    offsets = offsets_of(lists)
    inner = values.slice(offsets[0], offsets[-1] - offsets[0])
    for found, places in too_long_texts(inner, path, lengths, with_bytes=with_bytes):
        yield found, np.unique(np.searchsorted(offsets - offsets[0], places, side="right") - 1)


def offsets_of(column: pa.Array) -> npt.NDArray[np.int32]:
    """Return where each value of a column of texts, lists or maps begins, and where the last one ends (int32)."""
    # Read from the buffer, since pyarrow's own functions for lists crash the process when they are given a map.
    return np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
