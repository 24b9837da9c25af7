"""The files of a merged gold table: sorted by key, so that a change rewrites only the files that have its keys.

Each file is merged by itself, so a refresh needs memory for one file, however many keys the table has.

The log has bounds of each column, not of whole keys. So a file has either all rows of some values of the first column,
or only rows of one value of it, and then the same holds for the next column. The bounds of a file's keys therefore end
with the first column that varies.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from gamelake.delta.file_bounds import bounds_of
from gamelake.delta.log.codec import FileEntry, file_entries
from gamelake.model.arrays import Ints

ROWS_PER_RUN = 100_000

# The values of the first columns of a key, each from `_ordered`. It stands for all keys that begin with them.
_Prefix = tuple[tuple[bool, Any], ...]


def _ordered(value: object) -> tuple[bool, Any]:
    """Return a value that Python can compare with others; null is the greatest."""
    return value is None, value


def sorted_by_key(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Sort rows by these key columns in ascending order, nulls last, like the files of a merged table."""
    return rows.sort_by([(key, "ascending") for key in keys]).combine_chunks()


@dataclass(frozen=True, slots=True)
class KeyRun:
    """A file and the bounds of its rows' keys.

    Attributes:
        file: the file.
        bounds: two prefixes of keys. No key of the file is less than all keys that begin with the first prefix, or
            greater than all keys that begin with the second. None if the log has no bounds.
    """

    file: FileEntry
    bounds: tuple[_Prefix, _Prefix] | None


def runs_of(handle: DeltaTable, keys: Sequence[str]) -> list[KeyRun]:
    """Read the files of an open table and their bounds, in no particular order.

    Args:
        handle: the table.
        keys: the key columns, in the order by which the files are sorted.
    """
    actions = pa.table(handle.get_add_actions(flatten=False))
    columns = [_bounds_of_files(actions, key) for key in keys]
    return [KeyRun(file, _bounds(of_file)) for file, *of_file in zip(file_entries(actions), *columns, strict=True)]


def _bounds_of_files(actions: pa.Table, key: str) -> list[tuple[Any, Any] | None]:
    """Return a column's least and greatest value in each file; None where they are not known."""
    counts = actions.column("null_count") if "null_count" in actions.column_names else None
    if counts is None or counts.type.get_field_index(key) < 0:
        return [None] * len(actions)
    columns = (*bounds_of(actions, key), pc.struct_field(counts, key), actions.column("num_records"))
    return [_with_nulls(*each) for each in zip(*(column.to_pylist() for column in columns), strict=True)]


def _with_nulls(least: object, greatest: object, nulls: int | None, rows: int | None) -> tuple[Any, Any] | None:
    if nulls is None or isinstance(least, float):  # NaN is in no range
        return None
    if nulls == rows:
        return None, None
    if least is None or greatest is None:
        return None
    return least, None if nulls else greatest


def _bounds(columns: Sequence[tuple[Any, Any] | None]) -> tuple[_Prefix, _Prefix] | None:
    """Combine the bounds of a file's columns into bounds of its keys, up to the first column that varies."""
    least: _Prefix = ()
    greatest: _Prefix = ()
    for column in columns:
        if column is None:
            return (least, greatest) if least else None
        least, greatest = (*least, _ordered(column[0])), (*greatest, _ordered(column[1]))
        if least != greatest:
            break
    return least, greatest


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Files that are merged together, and the range of keys that belongs to them.

    Attributes:
        files: the files.
        least: a prefix of keys; the range begins with the first key that has it. Empty: no lower bound.
        below: a prefix of keys; the range ends before the first key that has it. Empty: no upper bound.
    """

    files: Sequence[FileEntry]
    least: _Prefix = ()
    below: _Prefix = ()

    def of(self, rows: pa.Table, keys: Sequence[str]) -> pa.Table:
        """Return the rows of the range as a slice of `rows`, which are sorted by the columns `keys`, nulls last."""
        columns = [rows.column(key) for key in keys]
        start = _place(columns, self.least)
        stop = _place(columns, self.below) if self.below else len(rows)
        return rows.slice(start, stop - start)


def _place(columns: Sequence[pa.ChunkedArray], prefix: _Prefix) -> int:
    """Return the number of rows whose key is less than all keys that begin with the prefix."""
    return bisect_left(range(len(columns[0])), prefix, key=lambda row: _first(columns, row, len(prefix)))


def _first(columns: Sequence[pa.ChunkedArray], row: int, count: int) -> _Prefix:
    return tuple(_ordered(column[row].as_py()) for column in columns[:count])


def touched(runs: Sequence[KeyRun], changed: pa.Table) -> list[KeyRange]:
    """Return the ranges that the changed keys belong to, in order; one for the whole table if its order is not known.

    Args:
        runs: all files of the table.
        changed: the changed keys: only the key columns, sorted, nulls last.
    """
    ranges, columns, row = _ranges(runs), changed.columns, 0
    found = list[KeyRange]()
    while row < len(changed):
        key = _first(columns, row, len(columns))
        found.append(ranges[bisect_right(ranges, key, key=lambda each: each.least) - 1])
        row = _place(columns, found[-1].below) if found[-1].below else len(changed)
    return found


def _ranges(runs: Sequence[KeyRun]) -> list[KeyRange]:
    """Divide all keys into ranges, in ascending order; overlapping files share one range."""
    known = [(run.bounds, run.file) for run in runs if run.bounds is not None]
    if not known or len(known) < len(runs):
        return [KeyRange([run.file for run in runs])]
    in_order = iter(sorted(known, key=lambda each: each[0]))
    (least, highest), file = next(in_order)
    groups = [(least, [file])]
    for (least, greatest), file in in_order:
        if _is_below(highest, least):
            groups.append((least, [file]))
            highest = greatest
        else:
            groups[-1][1].append(file)
            highest = _higher(highest, greatest)
    bounds = [(), *(least for least, _ in groups[1:]), ()]
    return [KeyRange(files, *bounds[place : place + 2]) for place, (_, files) in enumerate(groups)]


def _higher(prefix: _Prefix, other: _Prefix) -> _Prefix:
    """Return the prefix with the greater keys; if neither is below the other, the shorter one, which covers both."""
    if _is_below(prefix, other) or _is_below(other, prefix):
        return max(prefix, other)
    return min(prefix, other, key=len)


def _is_below(prefix: _Prefix, other: _Prefix) -> bool:
    """Return True if every key that begins with `prefix` is less than every key that begins with `other`."""
    common = min(len(prefix), len(other))
    return prefix[:common] < other[:common]


def split(rows: pa.Table, keys: Sequence[str], most: int | None = None) -> Iterator[pa.Table]:
    """Split rows into runs of at most `most` rows and of nearly the same length.

    A run either has all rows of each of its values of the first key column, or has one value only. In that case the
    same holds for the next key column.

    Args:
        rows: all columns, sorted by `keys`, nulls last.
        keys: the key columns.
        most: the number of rows; `ROWS_PER_RUN` if None.

    Yields:
        Slices of `rows`, in order.
    """
    most = ROWS_PER_RUN if most is None else most
    if len(rows) <= most:
        yield from [rows] if len(rows) else []
        return
    # Cutting full runs would leave a short one for the rest each time that a run grows.
    length = ceil(len(rows) / ceil(len(rows) / most))
    ends, start = _ends_of_values(rows.column(keys[0])), 0
    while start < len(rows):
        place = int(np.searchsorted(ends, min(start + length, len(rows))))
        stop, before = int(ends[place]), int(ends[place - 1]) if place else 0
        if stop - start > most and before > start:
            stop = before
        yield from split(rows.slice(start, stop - start), keys[1:], most)
        start = stop


def _ends_of_values(column: pa.ChunkedArray) -> Ints:
    """Return the row number after the last row of each value of a sorted column: int64, ascending."""
    codes = column.combine_chunks().dictionary_encode(null_encoding="encode")
    numbers = (codes.combine_chunks() if isinstance(codes, pa.ChunkedArray) else codes).indices.to_numpy()
    return np.append(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1, len(numbers))
