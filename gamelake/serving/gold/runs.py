"""How a merged gold table lies in files: sorted by key, so that a change rewrites only the files that have its keys.

Each such file is merged by itself, so that a refresh needs memory for one of them, however many keys the table has.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from gamelake.storage.delta_log import FileEntry, file_entries

ROWS_PER_RUN = 100_000


@dataclass(frozen=True, slots=True)
class PartitionRun:
    """A file and the least and greatest of its rows' first keys; None where the log does not say."""

    file: FileEntry
    least: Any
    greatest: Any


def runs_of(handle: DeltaTable, key: str) -> list[PartitionRun]:
    """The files of an open table, in the order of their keys where that is known."""
    actions = pa.table(handle.get_add_actions(flatten=False))
    least, greatest = (_bounds(actions, side, key) for side in ("min", "max"))
    runs = [PartitionRun(*each) for each in zip(file_entries(actions), least, greatest, strict=True)]
    return sorted(runs, key=lambda run: run.least) if all(run.least is not None for run in runs) else runs


def _bounds(actions: pa.Table, side: str, key: str) -> list[Any]:
    if side not in actions.column_names or actions.schema.field(side).type.get_field_index(key) < 0:
        return [None] * len(actions)
    bounds: list[Any] = pc.struct_field(actions.column(side), key).to_pylist()
    return bounds


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Files that are merged together, and the first keys that belong to them: from `least` on, less than `below`.

    None is no bound. A null is greater than all other keys.
    """

    files: Sequence[FileEntry]
    least: Any = None
    below: Any = None

    def has(self, keys: pa.ChunkedArray) -> pa.ChunkedArray:
        """Whether each of the keys belongs to the range, in their order."""
        found = pa.chunked_array([pa.repeat(pa.scalar(True), len(keys))])
        if self.least is not None:
            from_least = pc.greater_equal(keys, pa.scalar(self.least, keys.type))
            found = pc.fill_null(from_least, fill_value=True)
        if self.below is not None:
            is_below = pc.less(keys, pa.scalar(self.below, keys.type))
            found = pc.and_(found, pc.fill_null(is_below, fill_value=False))
        return found


def touched(runs: Sequence[PartitionRun], keys: pa.ChunkedArray) -> list[KeyRange]:
    """The runs that rows of these first keys are in, or would be; all of them as one where their order is not known."""
    if len(runs) <= 1 or not _in_order(runs):
        return [KeyRange([run.file for run in runs])]
    # A key below all others belongs to the first run.
    bounds = [None, *(run.least for run in runs[1:]), None]
    ranges = [KeyRange([run.file], *bounds[place : place + 2]) for place, run in enumerate(runs)]
    return [each for each in ranges if pc.any(each.has(keys)).as_py()]


def _in_order(runs: Sequence[PartitionRun]) -> bool:
    # NaN is in no range.
    known = all(None not in (run.least, run.greatest) and not isinstance(run.least, float) for run in runs)
    return known and all(before.greatest < after.least for before, after in pairwise(runs))


def split(rows: pa.Table, key: str) -> Iterator[pa.Table]:
    """Sorted rows as runs of nearly the same length; rows of one first key stay together."""
    first, start = rows.column(key), 0
    # With a full run and a short one for the rest, each run that grows would leave short ones behind.
    length = ceil(len(rows) / max(1, ceil(len(rows) / ROWS_PER_RUN)))
    while start < len(rows):
        stop = min(start + length, len(rows))
        while stop < len(rows) and first[stop] == first[stop - 1]:
            stop += 1
        yield rows.slice(start, stop - start)
        start = stop
