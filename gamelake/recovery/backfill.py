"""Rewrites rows of a table from their bronze records, to fill a column that was added later."""

from dataclasses import dataclass
from functools import partial

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, lit

from gamelake.delta.log.codec import (
    REBUILT_NOTE,
    FileEntry,
    add_action,
    commit_info,
    live_files,
    now_milliseconds,
    remove_action,
)
from gamelake.delta.rewrites import commit_rewrite, discard, maintenance_lease, revision_lease
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import open_table
from gamelake.layers.silver import EVENT_DATE
from gamelake.model.errors import StartupError, TransientError
from gamelake.model.naming import BRONZE_EVENTS
from gamelake.objects.leases import Lease
from gamelake.recovery.replay.execution import run
from gamelake.recovery.replay.execution import table as version_of
from gamelake.recovery.replay.replayer import DecidedReplay, Replayer
from gamelake.recovery.replay.task import DayRange, Purpose, ReplayPlan, WantedRows


class RewriteError(StartupError):
    """A rewrite would lose rows: their records are missing in bronze, or can no longer be decoded."""


class RewrittenTable(msgspec.Struct, frozen=True, kw_only=True):
    """The result of rewriting a table, or of its dry run.

    Attributes:
        table: path of the table.
        rows: number of rows that were rewritten.
        files_before: number of files that were replaced.
        files_after: number of files that replace them; None in a dry run.
        new_columns: columns that the table got, sorted by name; empty in a dry run.
        version: version of the commit; None in a dry run.
    """

    table: str
    rows: int
    files_before: int
    files_after: int | None = None
    new_columns: tuple[str, ...] = ()
    version: int | None = None


@dataclass(frozen=True, slots=True)
class _Before:
    """A table before its rewrite.

    Attributes:
        version: the version that was read.
        files: the files to replace.
        rows: number of rows in these files.
        columns: names of the table's columns.
    """

    version: int
    files: list[FileEntry]
    rows: int
    columns: frozenset[str]


@dataclass(frozen=True, slots=True)
class Rewriter:
    """Rewrites tables of a lakehouse while the streams append rows that already have the new columns.

    Attributes:
        replays: decodes the records.
        spark: joins the table's rows with their bronze records.
    """

    replays: Replayer
    spark: SparkSession

    def dry_run(self, table: str, days: DayRange) -> RewrittenTable:
        """Decode the rows again and count them; write nothing.

        Raises:
            RewriteError: rows would be lost.
        """
        before = self._before(table, days)
        decided = self._decode(table, days, before, Purpose.COUNT)
        _require_all(table, before, decided)
        return RewrittenTable(table=table, rows=before.rows, files_before=len(before.files))

    def rewrite(self, table: str, days: DayRange) -> RewrittenTable:
        """Decode the rows again and replace the files.

        Raises:
            RewriteError: rows would be lost; nothing was changed.
            LeaseHeldError: another process holds the maintenance lease of the table, or the revision lease.
            TransientError: another process replaced the same files meanwhile.
        """
        store = self.replays.tables.store
        with revision_lease(store), maintenance_lease(store, table) as lease:
            before = self._before(table, days)
            decided = self._decode(table, days, before, Purpose.WRITE)
            entry = next((each for each in decided.tables if each.table == table), None)
            try:
                _require_all(table, before, decided)
            except RewriteError:
                discard(store, table, entry.files if entry else ())
                raise
            return (
                self._replaced(before, entry, lease) if entry else RewrittenTable(table=table, rows=0, files_before=0)
            )

    def _before(self, table: str, days: DayRange) -> _Before:
        handle = open_table(self.replays.tables.store.location, table)
        files = [file for file in live_files(handle) if days.contains(file.partition.get(EVENT_DATE) or "")]
        actions = pa.table(handle.get_add_actions(flatten=True))
        rows = dict(zip(actions["path"].to_pylist(), actions["num_records"].to_pylist(), strict=True))
        columns = frozenset(field.name for field in handle.schema().fields)
        return _Before(handle.version(), files, sum(rows[file.path] for file in files), columns)

    def _decode(self, table: str, days: DayRange, before: _Before, purpose: Purpose) -> DecidedReplay:
        bronze = open_table(self.replays.tables.store.location, BRONZE_EVENTS).version()
        plan = ReplayPlan(
            decoding=self.replays.decoding,
            run=0,
            source=BRONZE_EVENTS,
            targets=frozenset([table]),
            versions=self.replays.present_versions() | {table: before.version, BRONZE_EVENTS: bronze},
            wanted=WantedRows.PRESENT,
            purpose=purpose,
            days=days,
        )
        return self.replays.decide(partial(run, self._records(table, days, plan)), plan)

    def _records(self, table: str, days: DayRange, plan: ReplayPlan) -> DataFrame:
        """Select the bronze records of the table's rows, by Kafka partition and offset."""
        location = self.replays.tables.store.location
        rows = version_of(self.spark, location, table, plan.versions[table])
        if days.first is not None:
            rows = rows.where(col(EVENT_DATE) >= lit(days.first))
        if days.last is not None:
            rows = rows.where(col(EVENT_DATE) <= lit(days.last))
        coordinates = rows.select(col("kafka_partition").alias("partition"), col("kafka_offset").alias("offset"))
        bronze = version_of(self.spark, location, BRONZE_EVENTS, plan.versions[BRONZE_EVENTS])
        return bronze.join(coordinates, ["partition", "offset"], "left_semi")

    def _replaced(self, before: _Before, entry: TableFiles, lease: Lease) -> RewrittenTable:
        self.replays.tables.widen(entry)
        store, now = self.replays.tables.store, now_milliseconds()
        actions = [commit_info(now, "WRITE", {"mode": "Overwrite"}, notes={REBUILT_NOTE: str(entry.rows)})]
        actions += [remove_action(file, now) for file in before.files]
        actions += [add_action(file, now) for file in entry.files]
        version = commit_rewrite(store, entry.table, before.version, actions, lease)
        if version is None:
            discard(store, entry.table, entry.files)
            raise TransientError(f"{entry.table}: files were replaced meanwhile; nothing was changed, try again")
        after = open_table(store.location, entry.table)
        return RewrittenTable(
            table=entry.table,
            rows=entry.rows,
            files_before=len(before.files),
            files_after=len(entry.files),
            new_columns=tuple(sorted({field.name for field in after.schema().fields} - before.columns)),
            version=version,
        )


def _require_all(table: str, before: _Before, decided: DecidedReplay) -> None:
    found = decided.result.rows.get(table, 0)
    if erased := decided.result.erased.get(table, 0):
        raise RewriteError(
            f"{erased} rows of {table} are of players whose erasure is recorded: delete them first "
            "(jobs/forget_player.py --sweep --also-rows). Nothing was changed"
        )
    if found != before.rows:
        dead = ", ".join(f"{count} {reason}" for reason, count in decided.result.still_dead.items())
        raise RewriteError(
            f"of {before.rows} rows of {table}, bronze still has {found}{f' ({dead})' if dead else ''}: the others "
            "would be lost. Nothing was changed; exclude their days"
        )
