"""How a merged gold table lies in files: sorted by key, so that a change rewrites only the files that have its keys."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from gamelake.storage.delta_log import FileEntry, file_entries

ROWS_PER_RUN = 200_000


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


def touched(runs: Sequence[PartitionRun], keys: pa.ChunkedArray) -> list[PartitionRun]:
    """The runs that rows of these first keys are in, or would be; all of them where their order is not known."""
    if len(runs) <= 1 or not _in_order(runs) or keys.null_count:
        return list(runs)
    # A key below all others belongs to the first run.
    places = np.searchsorted(np.array([run.least for run in runs]), np.array(keys.to_pylist()), side="right") - 1
    return [runs[place] for place in np.unique(np.maximum(places, 0))]


def _in_order(runs: Sequence[PartitionRun]) -> bool:
    known = all(run.least is not None and run.greatest is not None for run in runs)
    return known and all(before.greatest < after.least for before, after in pairwise(runs))


def split(rows: pa.Table, key: str) -> Iterator[pa.Table]:
    """Sorted rows as runs; rows of one first key stay together."""
    first, start = rows.column(key), 0
    while start < len(rows):
        stop = min(start + ROWS_PER_RUN, len(rows))
        while stop < len(rows) and first[stop] == first[stop - 1]:
            stop += 1
        yield rows.slice(start, stop - start)
        start = stop
