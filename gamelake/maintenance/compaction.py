"""Compaction of a table's small files while a stream appends to it; no row changes.

Files that are large enough are not rewritten, so a second run finds no work. Partitions of past days come first: they
are rewritten once and never again. A partition of today is not compacted until it has many small files.
Source: Delta Transaction Log Protocol, heading "Add File and Remove File" (`dataChange`).
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote, urlsplit

import duckdb
import msgspec
import pyarrow as pa

from gamelake.delta.appends import schema_of
from gamelake.delta.commits import CommitConflictError, commit_with_retry
from gamelake.delta.data_files import DataFile
from gamelake.delta.log.codec import (
    Action,
    FileEntry,
    add_action,
    commit_info,
    live_files,
    now_milliseconds,
    remove_action,
    without_data_change,
)
from gamelake.delta.log.table_features import TableDemands, TableUse
from gamelake.delta.rewrites import commit_rewrite, discard, maintenance_lease, write_replacement
from gamelake.delta.tables import open_table
from gamelake.model.failpoints import Failpoint, Failpoints, Kill
from gamelake.objects.leases import Lease
from gamelake.objects.store import Location, Store
from gamelake.scans.datasets import dataset

# Files of at least this share of the target size stay: rewriting them costs much and gains little.
_LARGE_ENOUGH = 0.75
_FETCHES_AT_ONCE = 16
_ATTEMPTS = 5
# Frequent commits keep the work done so far, and seldom conflict with other writers.
_BINS_PER_COMMIT = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRule:
    """The choice of the files to compact, and the size of the compacted ones.

    Attributes:
        target_bytes: size of a compacted file.
        hot_files: a partition of today is compacted if it has more small files than this.
        today: partitions of earlier days are closed.
        most_bytes: upper bound of the size of a bin's files, if memory is short; None for no bound.
    """

    target_bytes: int
    hot_files: int
    today: date
    most_bytes: int | None = None

    def within(self, most_bytes: int) -> "CompactionRule":
        """Return this rule for a process with memory for bins of this size; compacted files are at most this large."""
        return replace(self, target_bytes=min(self.target_bytes, most_bytes), most_bytes=most_bytes)


@dataclass(frozen=True, slots=True)
class Bin:
    """Files of one partition that are replaced together, by one file or, with Spark's OPTIMIZE, a few.

    Attributes:
        partition: the values of the partition columns.
        files: the files to compact, all of this partition.
    """

    partition: Mapping[str, str | None]
    files: tuple[FileEntry, ...]

    @property
    def bytes(self) -> int:
        """The size of the files before compaction."""
        return sum(file.size for file in self.files)


def bins(files: Iterable[FileEntry], rule: CompactionRule) -> list[Bin]:
    """Group the small files of a table into bins.

    Args:
        files: the live files of the table.
        rule: the choice of the files.

    Returns:
        The bins of closed partitions, then those of today's partitions; of both, partitions with most files come first.
    """
    small: dict[tuple[str | None, ...], list[FileEntry]] = defaultdict(list)
    for file in files:
        if file.size < _LARGE_ENOUGH * rule.target_bytes:
            small[tuple(file.partition.values())].append(file)
    closed = [each for each in small.values() if _is_closed(each[0], rule.today)]
    hot = [each for each in small.values() if not _is_closed(each[0], rule.today) and len(each) > rule.hot_files]
    order = [*sorted(closed, key=lambda each: -len(each)), *sorted(hot, key=lambda each: -len(each))]
    return [found for of_partition in order for found in _bins_of(of_partition, rule)]


def _is_closed(file: FileEntry, today: date) -> bool:
    """Return True if the day of the file's partition is over; False if the table is not partitioned by day."""
    try:
        return date.fromisoformat(next(iter(file.partition.values()), None) or "") < today
    except ValueError:
        return False


def _bins_of(files: Sequence[FileEntry], rule: CompactionRule) -> list[Bin]:
    """Fill bins with the smallest files first, to get few bins; drop a bin with only one file."""
    filled_bins: list[list[FileEntry]] = [[]]
    filled = 0
    for file in sorted(files, key=lambda each: (each.size, each.path)):
        if filled >= rule.target_bytes or (rule.most_bytes is not None and filled + file.size > rule.most_bytes):
            filled_bins.append([])
            filled = 0
        filled_bins[-1].append(file)
        filled += file.size
    return [Bin(each[0].partition, tuple(each)) for each in filled_bins if len(each) > 1]


def rows_of(store: Store, table: str, columns: pa.Schema, files: Sequence[FileEntry]) -> pa.Table:
    """Read the rows of files of one partition.

    Args:
        store: the store of the lakehouse.
        table: path of the table.
        columns: the schema of the table, partition columns included.
        files: one file or more, all of the same partition.

    Returns:
        The rows in the order of `files`, with the columns of the table in its order and types, without the partition
        columns; a column that an older file lacks is null.

    Raises:
        FileNotFoundError: a file is gone.
    """
    wanted = pa.schema([field for field in columns if field.name not in files[0].partition])
    with _on_disk(store, table, files) as paths, suppress(duckdb.Error, pa.ArrowException):
        return _in(wanted, _read(paths))
    # DuckDB rejects invalid UTF-8 and times beyond its calendar, which Arrow reads. Arrow also reports a missing file.
    return dataset(store.location, table, columns, files).to_table(columns=wanted.names)


def _read(paths: Sequence[str]) -> pa.Table:
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        query = "SELECT * FROM read_parquet($paths, union_by_name = true, hive_partitioning = false)"
        return connection.sql(query, params={"paths": list(paths)}).to_arrow_table()


def _in(wanted: pa.Schema, rows: pa.Table) -> pa.Table:
    """Cast rows to the columns of a table; older files lack the newer ones, which become null."""
    there = set(rows.column_names)
    found = [
        rows.column(field.name).cast(field.type) if field.name in there else pa.nulls(rows.num_rows, field.type)
        for field in wanted
    ]
    return pa.Table.from_arrays(found, schema=wanted)


@contextmanager
def _on_disk(store: Store, table: str, files: Sequence[FileEntry]) -> Iterator[list[str]]:
    """Yield paths of the files on the local disk: in place, or fetched in parallel into a temporary directory."""
    parts = urlsplit(store.location.child(table))
    if parts.scheme == "file":
        yield [str(Path(unquote(parts.path)) / file.relative_path) for file in files]
        return
    with TemporaryDirectory(prefix="gamelake-compaction-") as folder, ThreadPoolExecutor(_FETCHES_AT_ONCE) as pool:
        paths = [f"{folder}/{number}.parquet" for number in range(len(files))]

        def fetch(path: str, file: FileEntry) -> None:
            Path(path).write_bytes(store.get(f"{table}/{file.relative_path}") or b"")

        list(pool.map(fetch, paths, files))
        yield paths


class Compacted(msgspec.Struct, frozen=True, kw_only=True):
    """The result of compacting a table.

    Attributes:
        table: path of the table.
        partitions: number of compacted partitions.
        files_before: number of files that were replaced.
        files_after: number of files that replace them.
        bytes_before: size of the replaced files.
        bytes_after: size of the files that replace them.
        versions: the versions that were committed, in order.
        seconds: duration.
    """

    table: str
    partitions: int = 0
    files_before: int = 0
    files_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    versions: tuple[int, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class TableCompaction:
    """The compaction of one table; picklable, so that a Spark task can run it.

    Attributes:
        location: the lakehouse.
        table: path of the table.
        rule: the choice of the files.
        sort_by: columns that the rows of a compacted file are sorted by, so that readers skip most row groups.
        kill: kills the process at a failpoint, for tests.
    """

    location: Location
    table: str
    rule: CompactionRule
    sort_by: tuple[str, ...] = ()
    kill: Kill | None = None

    def plan(self) -> list[Bin]:
        """Read the table's log, and return the bins to compact; see `bins`.

        Raises:
            TableNotFoundError: the table does not exist.
        """
        return bins(live_files(open_table(self.location, self.table)), self.rule)

    def __call__(self) -> Compacted:
        """Compact the planned bins in several commits; a failed commit does not undo earlier ones.

        Raises:
            LeaseHeldError: another process holds the maintenance lease of the table.
            TransientError: other writers replaced the same files at every attempt.
            StoreError: the table has a Delta feature that is not supported.
        """
        started = time.perf_counter()
        if not self.plan():
            return Compacted(table=self.table)
        store, done = Store(self.location), Compacted(table=self.table)
        with maintenance_lease(store, self.table) as lease:
            planned = self.plan()
            failpoints = Failpoints(self.kill)
            for first in range(0, len(planned), _BINS_PER_COMMIT):
                done = _sum(done, self._compact(store, planned[first : first + _BINS_PER_COMMIT], lease, failpoints))
        return msgspec.structs.replace(done, seconds=time.perf_counter() - started)

    def _compact(self, store: Store, planned: Sequence[Bin], lease: Lease, failpoints: Failpoints) -> Compacted:
        def attempt() -> Compacted:
            handle = open_table(self.location, self.table)
            TableDemands.of(handle).require(handle.table_uri, TableUse.COMPACT)
            live = {file.path for file in live_files(handle)}
            # An erasure may have replaced files since the plan was made.
            whole = [each for each in planned if all(file.path in live for file in each.files)]
            if not whole:
                return Compacted(table=self.table)
            columns = schema_of(handle)
            written = [(each, [self._written(store, each, columns)]) for each in whole]
            failpoints.reach(Failpoint.AFTER_COMPACTED_FILES)
            committed = commit_rewrite(store, self.table, handle.version(), _actions(written), lease)
            if committed is None:
                discard(store, self.table, (file for _, files in written for file in files))
                raise CommitConflictError
            failpoints.reach(Failpoint.AFTER_COMPACTED_TABLE)
            return _result(self.table, written, committed)

        return commit_with_retry(self.table, _ATTEMPTS, attempt)

    def _written(self, store: Store, compacted: Bin, columns: pa.Schema) -> DataFile:
        rows = rows_of(store, self.table, columns, compacted.files)
        order = [(name, "ascending") for name in self.sort_by if name in rows.column_names]
        rows = rows.sort_by(order) if order else rows
        return write_replacement(store, self.table, compacted.files[0], rows.combine_chunks())


_Written = Sequence[tuple[Bin, Sequence[DataFile]]]


def _actions(written: _Written) -> list[Action]:
    now = now_milliseconds()
    removed = [remove_action(file, now) for each, _ in written for file in each.files]
    added = [add_action(file, now) for _, files in written for file in files]
    metrics = {"numRemovedFiles": len(removed), "numAddedFiles": len(added)}
    info = commit_info(now, "OPTIMIZE", {"predicate": "[]"}, metrics=metrics)
    return [info, *map(without_data_change, (*removed, *added))]


def _result(table: str, written: _Written, version: int) -> Compacted:
    added = [file for _, files in written for file in files]
    return Compacted(
        table=table,
        partitions=len({tuple(each.partition.values()) for each, _ in written}),
        files_before=sum(len(each.files) for each, _ in written),
        files_after=len(added),
        bytes_before=sum(each.bytes for each, _ in written),
        bytes_after=sum(file.size for file in added),
        versions=(version,),
    )


def _sum(one: Compacted, other: Compacted) -> Compacted:
    return Compacted(
        table=one.table,
        partitions=one.partitions + other.partitions,
        files_before=one.files_before + other.files_before,
        files_after=one.files_after + other.files_after,
        bytes_before=one.bytes_before + other.bytes_before,
        bytes_after=one.bytes_after + other.bytes_after,
        versions=one.versions + other.versions,
    )
