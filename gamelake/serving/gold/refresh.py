"""Brings one gold table up to date with its silver table, from the changes since its last refresh."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import Schema
from deltalake.exceptions import TableNotFoundError

from gamelake.contract.aggregates import Refresh
from gamelake.contract.time_zones import UTC_DAYS, Zones
from gamelake.delta.appends import schema_of
from gamelake.delta.comments import NO_COMMENTS, Comments
from gamelake.delta.commits import CommitConflictError, commit_with_retry
from gamelake.delta.data_files import DataFile
from gamelake.delta.log.codec import FileEntry, live_files
from gamelake.model.errors import ContractError, StoreError
from gamelake.objects.store import Location, Store
from gamelake.scans.datasets import dataset
from gamelake.scans.sql_engine import engine
from gamelake.serving.gold.definition import PARTITION, AggregateDefinition
from gamelake.serving.gold.history import TableChanges, TablePosition, changes_since, day_of, is_newest
from gamelake.serving.gold.merging import Merge, Source
from gamelake.serving.gold.runs import runs_of, sorted_by_key, split, touched
from gamelake.serving.gold.table import GoldTable, GoldWriter

_ATTEMPTS = 10


class RefreshOutcome(StrEnum):
    """The outcome of a refresh."""

    NO_SOURCE = "no_source"
    UNCHANGED = "unchanged"
    MERGED = "merged"
    PARTITIONS = "partitions"
    REBUILT = "rebuilt"
    HELD = "held"


class Refreshed(msgspec.Struct, frozen=True, kw_only=True):
    """One table after a refresh.

    Attributes:
        table: the table's path.
        outcome: the outcome of the refresh.
        version: the table's version; -1 if there is no table, or it was not opened.
        source_version: the version of silver that the table's rows match; -1 if none is known.
        source_entry: the digest of that version's log entry, as in `TablePosition`; "" if none is known.
        rows_written: the number of rows that the refresh wrote.
        unfit: the number of rows read with a value that no column of the table can hold; sums leave such values out.
        seconds: the duration of the refresh.
    """

    table: str
    outcome: RefreshOutcome
    version: int = -1
    source_version: int = -1
    source_entry: str = ""
    rows_written: int = 0
    unfit: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class GoldRefresh:
    """One gold table and its source. Spark sends it to the task that calls it.

    Attributes:
        location: the lakehouse.
        source: the silver table's path.
        table: the gold table's path.
        definition: the aggregate.
        threads: the number of threads that DuckDB uses.
        comments: the descriptions of the table and its columns.
        held: the reason why the table must not be refreshed now; "" if it may be.
        zones: the time zones of the games whose events the source has.
    """

    location: Location
    source: str
    table: str
    definition: AggregateDefinition
    threads: int = 1
    comments: Comments = NO_COMMENTS
    held: str = ""
    zones: Zones = UTC_DAYS

    def __call__(self) -> Refreshed:
        """Refresh the table.

        Raises:
            ContractError: the aggregate reads a column that silver lacks, or merges sums of floating-point numbers.
            StoreError: another writer committed first at every attempt; a gold table must have one writer.
        """
        if self.held:
            return Refreshed(table=self.table, outcome=RefreshOutcome.HELD)
        started = time.perf_counter()
        failure = StoreError(f"{self.table} has another writer too: stop it, since only the gold job may write here")
        done = commit_with_retry(self.table, _ATTEMPTS, self._once, failure)
        return msgspec.structs.replace(done, seconds=time.perf_counter() - started)

    def is_up_to_date(self, store: Store, last: Refreshed) -> bool:
        """Return True if neither the table nor silver changed since the last refresh of this process, in four reads.

        Args:
            store: the lakehouse.
            last: the result of that refresh.
        """
        if self.held or last.version < 0:
            return False
        return is_newest(store, self.source, last.source_version, last.source_entry) and is_newest(
            store, self.table, last.version
        )

    def _once(self) -> Refreshed:
        """Attempt the refresh once; raise CommitConflictError after a conflict."""
        store = Store(self.location)
        gold = GoldTable.open(store, self.table, self.definition, self._zones)
        changes = None
        if gold is not None and gold.position is not None:
            changes = changes_since(store, self.source, gold.position)
            if changes is not None and changes.is_empty:
                return self._advanced(store, gold, changes.position)
        with engine(self.threads) as sql:
            step = _Step(self, Source(store, self.source, self.definition, sql, self._zones), gold)
            if gold is None or changes is None:
                return step.rebuild()
            try:
                return step.take_in(gold, changes)
            except FileNotFoundError:
                # A changed file is deleted already, and the table is not by day.
                return step.rebuild()

    @property
    def _zones(self) -> Zones:
        """The zones that the table's days depend on."""
        return self.zones if self.definition.is_by_reporting_day else UTC_DAYS

    def writer(self, store: Store) -> GoldWriter:
        """Return the writer of the table's versions."""
        return GoldWriter(store, self.table, self.definition, self._zones, self.comments)

    def _advanced(self, store: Store, gold: GoldTable, position: TablePosition) -> Refreshed:
        """Record the newer version of silver that has the same rows.

        Vacuum and log cleanup delete older versions, and after an erasure nothing else records which version gold
        matches.
        """
        version = gold.handle.version()
        if gold.position != position or gold.is_erased_since or gold.zones != self._zones.rules:
            if not self.writer(store).commit(gold, schema_of(gold.handle), [], [], position):
                raise CommitConflictError
            version += 1
        return _refreshed(self.table, RefreshOutcome.UNCHANGED, version, position)


def _refreshed(
    table: str, outcome: RefreshOutcome, version: int, position: TablePosition, rows_written: int = 0, unfit: int = 0
) -> Refreshed:
    return Refreshed(
        table=table,
        outcome=outcome,
        version=version,
        source_version=position.version,
        source_entry=position.entry,
        rows_written=rows_written,
        unfit=unfit,
    )


@dataclass(slots=True)
class _Written:
    """The files of one commit.

    Attributes:
        schema: the columns of the files' rows, in order.
        files: the files; no commit names them yet.
    """

    schema: pa.Schema
    files: list[DataFile] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """The number of rows of all files."""
        return sum(file.rows for file in self.files)

    def __iadd__(self, other: Self) -> Self:
        """Add files with the same columns."""
        self.files += other.files
        return self


@dataclass(frozen=True, slots=True)
class _Step:
    """One attempt at a refresh; `gold` is None if there is no table yet."""

    job: GoldRefresh
    source: Source
    gold: GoldTable | None

    @property
    def _definition(self) -> AggregateDefinition:
        return self.job.definition

    @property
    def _writer(self) -> GoldWriter:
        return self.job.writer(self.source.store)

    def rebuild(self) -> Refreshed:
        """Compute the table from all of silver. If silver lacks a required column, the table has no rows."""
        try:
            handle, position = self.source.newest()
        except TableNotFoundError:
            return Refreshed(table=self.job.table, outcome=RefreshOutcome.NO_SOURCE)
        if self.source.lacks_required(schema_of(handle)):
            return self._emptied(position)
        self.source.give_live("silver", handle)
        _check_exact(self.source)
        rows, unfit = self.source.aggregate("silver")
        removed = [] if self.gold is None else live_files(self.gold.handle)
        made = self._written(self._sorted(rows))
        return self._finish(made, removed, position, RefreshOutcome.REBUILT, unfit)

    def _emptied(self, position: TablePosition) -> Refreshed:
        """Remove all rows, for example after a restore of silver; make no table that does not exist yet."""
        if self.gold is None:
            return Refreshed(table=self.job.table, outcome=RefreshOutcome.NO_SOURCE)
        removed = live_files(self.gold.handle)
        made = _Written(schema_of(self.gold.handle))
        return self._finish(made, removed, position, RefreshOutcome.REBUILT, 0)

    def take_in(self, gold: GoldTable, changes: TableChanges) -> Refreshed:
        """Apply the changes of silver to the table."""
        if any(self._lacks_required_at(position) for position in (gold.position, changes.position)):
            return self.rebuild()
        if self._definition.spec.refresh is Refresh.PARTITION:
            return self._compute_days(gold, changes)
        schema = schema_of(gold.handle)
        everything = dataset(self.job.location, self.job.table, schema, live_files(gold.handle))
        merge = Merge(self.source, changes, everything)
        made, removed = _Written(schema), list[FileEntry]()
        for concerned in touched(runs_of(gold.handle, self._definition.keys), merge.keys):
            old = dataset(self.job.location, self.job.table, schema, concerned.files).to_table()
            made += self._written(self._sorted(merge.rows(old, concerned)))
            removed += concerned.files
        return self._finish(made, removed, changes.position, RefreshOutcome.MERGED, merge.unfit)

    def _lacks_required_at(self, position: TablePosition | None) -> bool:
        return position is not None and self.source.lacks_required(pa.schema(Schema.from_json(position.schema)))

    def _compute_days(self, gold: GoldTable, changes: TableChanges) -> Refreshed:
        handle, zones = self.source.at(changes.position), self.source.zones
        days = zones.reporting_days(changes.days)
        read = zones.utc_days(days)
        self.source.give("silver", schema_of(handle), [file for file in live_files(handle) if day_of(file) in read])
        rows, unfit = self.source.aggregate("silver")
        if zones.names:
            # The first and the last day were read only in part.
            rows = rows.filter(pc.is_in(rows.column(PARTITION), pa.array(days, pa.date32())))
        removed = [file for file in live_files(gold.handle) if day_of(file) in days]
        made = self._written(self._sorted(rows))
        return self._finish(made, removed, changes.position, RefreshOutcome.PARTITIONS, unfit)

    def _finish(
        self,
        made: _Written,
        removed: Sequence[FileEntry],
        position: TablePosition,
        outcome: RefreshOutcome,
        unfit: int,
    ) -> Refreshed:
        if not self._writer.commit(self.gold, made.schema, made.files, removed, position):
            raise CommitConflictError
        version = 0 if self.gold is None else self.gold.handle.version() + 1
        return _refreshed(self.job.table, outcome, version, position, made.rows, unfit)

    def _written(self, rows: pa.Table) -> _Written:
        """Write sorted rows as files that no commit names yet."""
        writer = self._writer
        if writer.is_partitioned:
            days = rows.column(PARTITION).unique().to_pylist()
            files = [
                writer.write(
                    rows.filter(pc.field(PARTITION) == pa.scalar(day)).drop_columns([PARTITION]), {PARTITION: str(day)}
                )
                for day in days
            ]
        else:
            files = [writer.write(run, {}) for run in split(rows, self._definition.keys)]
        return _Written(rows.schema, files)

    def _sorted(self, rows: pa.Table) -> pa.Table:
        """Sort rows by key, and cast them to the types of the existing table."""
        rows = sorted_by_key(rows, self._definition.keys)
        if self.gold is None or self.gold.position is None:
            return rows
        columns = schema_of(self.gold.handle)
        return rows.select(columns.names).cast(columns)


def _check_exact(source: Source) -> None:
    definition = source.definition
    inexact = source.sql.floating(definition.over("silver"))
    sums = sorted(name for name in inexact if definition.merged_by.get(name) == "sum")
    if sums:
        raise ContractError(
            f"the column '{sums[0]}' of the aggregate '{definition.spec.name}' adds floating-point numbers, whose sum "
            "depends on their order; cast them to DECIMAL, or refresh the table by partition"
        )
