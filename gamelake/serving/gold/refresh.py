"""Brings one gold table up to date with its silver table, by what has changed since it last was."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import TableNotFoundError

from gamelake.model.aggregates import Refresh
from gamelake.model.errors import ContractError, StoreError
from gamelake.serving.gold.definition import PARTITION, AggregateDefinition
from gamelake.serving.gold.history import TableChanges, TablePosition, changes_since, day_of, is_newest
from gamelake.serving.gold.merging import Merge, Source
from gamelake.serving.gold.runs import runs_of, split, touched
from gamelake.serving.gold.table import GoldTable, GoldWriter
from gamelake.storage.appends import schema_of
from gamelake.storage.comments import NO_COMMENTS, Comments
from gamelake.storage.commits import CommitConflictError, commit_with_retry
from gamelake.storage.data_files import DataFile
from gamelake.storage.datasets import dataset
from gamelake.storage.delta_log import FileEntry, live_files
from gamelake.storage.sql_engine import engine
from gamelake.storage.store import Location, Store

_ATTEMPTS = 10


class RefreshOutcome(StrEnum):
    """What a refresh did."""

    NO_SOURCE = "no_source"
    UNCHANGED = "unchanged"
    MERGED = "merged"
    PARTITIONS = "partitions"
    REBUILT = "rebuilt"
    HELD = "held"


class Refreshed(msgspec.Struct, frozen=True, kw_only=True):
    """One table after a refresh.

    Attributes:
        version: of the table; -1 if there is none.
        source_version: the version of silver that it is equal to; -1 if it is to none.
        source_entry: what `TablePosition` has of that version's log entry.
        rows_written: by the refresh.
        unfit: how many values of the rows that were read no column of the table can hold; sums leave them out.
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
    """One gold table and what it is made of; `held` is why it is to stay as it is, empty if it isn't."""

    location: Location
    source: str
    table: str
    definition: AggregateDefinition
    threads: int = 1
    comments: Comments = NO_COMMENTS
    held: str = ""

    def __call__(self) -> Refreshed:
        """Bring the table up to date.

        Raises:
            ContractError: the aggregate asks for a column that silver lacks, or can't be kept exact.
            StoreError: another writer committed first at every attempt: a gold table has one writer.
        """
        if self.held:
            return Refreshed(table=self.table, outcome=RefreshOutcome.HELD)
        started = time.perf_counter()
        failure = StoreError(f"{self.table} has another writer too; a gold table has one writer, its job")
        done = commit_with_retry(self.table, _ATTEMPTS, self._once, failure)
        return msgspec.structs.replace(done, seconds=time.perf_counter() - started)

    def is_up_to_date(self, store: Store, last: Refreshed) -> bool:
        """Whether the table and silver are as the last refresh of this process left them: no more than four reads.

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
        """One attempt, which raises CommitConflictError after a conflict."""
        store = Store(self.location)
        gold = GoldTable.open(store, self.table, self.definition)
        changes = None
        if gold is not None and gold.position is not None:
            changes = changes_since(store, self.source, gold.position)
            if changes is not None and changes.is_empty:
                return _refreshed(self.table, RefreshOutcome.UNCHANGED, gold.handle.version(), changes.position)
        with engine(self.threads) as sql:
            step = _Step(self, Source(store, self.source, self.definition, sql), gold)
            if gold is None or changes is None:
                return step.rebuild()
            try:
                return step.take_in(gold, changes)
            except FileNotFoundError:
                # A file that came since was removed and is gone already.
                return step.rebuild()


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
    """Files of one commit, and the columns of their rows."""

    schema: pa.Schema
    files: list[DataFile] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """How many rows they have."""
        return sum(file.rows for file in self.files)

    def __iadd__(self, other: Self) -> Self:
        """Add files of the same columns."""
        self.files += other.files
        return self


@dataclass(frozen=True, slots=True)
class _Step:
    """One attempt at a refresh."""

    job: GoldRefresh
    source: Source
    gold: GoldTable | None

    @property
    def _definition(self) -> AggregateDefinition:
        return self.job.definition

    @property
    def _writer(self) -> GoldWriter:
        return GoldWriter(self.source.store, self.job.table, self._definition, self.job.comments)

    def rebuild(self) -> Refreshed:
        """Make the table from all of silver."""
        try:
            handle, position = self.source.newest()
        except TableNotFoundError:
            return Refreshed(table=self.job.table, outcome=RefreshOutcome.NO_SOURCE)
        self.source.give_live("silver", handle)
        _check_exact(self.source)
        rows, unfit = self.source.aggregate("silver")
        removed = [] if self.gold is None else live_files(self.gold.handle)
        made = self._written(self._sorted(rows))
        return self._finish(made, removed, position, RefreshOutcome.REBUILT, unfit)

    def take_in(self, gold: GoldTable, changes: TableChanges) -> Refreshed:
        """Bring the table up to date with changes of silver."""
        if self._definition.spec.refresh is Refresh.PARTITION:
            return self._compute_days(gold, changes)
        merge, schema = Merge(self.source, changes), schema_of(gold.handle)
        made, removed = _Written(schema), list[FileEntry]()
        for concerned in touched(runs_of(gold.handle, self._definition.keys[0]), merge.keys):
            old = dataset(self.job.location, self.job.table, schema, concerned.files).to_table()
            made += self._written(self._sorted(merge.rows(old, concerned)))
            removed += concerned.files
        return self._finish(made, removed, changes.position, RefreshOutcome.MERGED, merge.unfit)

    def _compute_days(self, gold: GoldTable, changes: TableChanges) -> Refreshed:
        handle = self.source.at(changes.position)
        of_days = [file for file in live_files(handle) if day_of(file) in changes.days]
        self.source.give("silver", schema_of(handle), of_days)
        rows, unfit = self.source.aggregate("silver")
        removed = [file for file in live_files(gold.handle) if day_of(file) in changes.days]
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
            files = [writer.write(run, {}) for run in split(rows, self._definition.keys[0])]
        return _Written(rows.schema, files)

    def _sorted(self, rows: pa.Table) -> pa.Table:
        """Sorted by key, in the types of the table that is there."""
        order = [(key, "ascending") for key in self._definition.keys]
        rows = rows.sort_by(order).combine_chunks()
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
