"""A compaction run over a lakehouse: chooses the tables and file sizes, and runs in this process or with Spark."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum
from functools import partial
from typing import TypeVar

import msgspec
from deltalake.exceptions import DeltaError

from gamelake.contract.games import GamesContract
from gamelake.delta.listing import appended_tables
from gamelake.delta.log.codec import live_files
from gamelake.delta.tables import open_table
from gamelake.maintenance.compaction import Bin, Compacted, CompactionRule, TableCompaction, bins
from gamelake.model.errors import GamelakeError
from gamelake.model.failpoints import Kill
from gamelake.model.logs import event_logger
from gamelake.objects.store import Store

log = event_logger(__name__)

_MIB = 2**20
_SHARED_TABLE_BYTES = 128 * _MIB
_WEEKLY_BYTES = 1024 * _MIB
# A larger bin exceeds the memory of one Spark task: OPTIMIZE writes it, on all executors.
TASK_BYTES = 64 * _MIB
# This process compacts this much in the time that Spark takes to start.
_SMALL_RUN_BYTES = 128 * _MIB
T = TypeVar("T")


def paced(pieces: Iterable[Callable[[], T]], rest: float, wait: Callable[[float], object] = time.sleep) -> Iterator[T]:
    """Run pieces of work one after another, with a pause after each.

    Args:
        pieces: functions that do the work.
        rest: length of the pause, as a multiple of the time that the piece took: 3 leaves 75 % of the time to other
            processes. A low priority is not enough, because a process on idle cores still shares memory and caches.
        wait: sleeps for a number of seconds.

    Yields:
        The result of each piece, in order.
    """
    for piece in pieces:
        started = time.perf_counter()
        done = piece()
        took = time.perf_counter() - started
        yield done
        wait(rest * took)


class CompactionScope(StrEnum):
    """The size of the files: daily up to the table's target size, weekly up to 1 GiB."""

    DAILY = "daily"
    WEEKLY = "weekly"


class CompactionEngine(StrEnum):
    """The engine that compacts a table."""

    LOCAL = "this process"
    TASK = "a task"
    OPTIMIZE = "Spark's OPTIMIZE"


class NotCompacted(msgspec.Struct, frozen=True, kw_only=True):
    """A table that could not be compacted; the run continued with the other tables.

    Attributes:
        table: path of the table.
        reason: the error.
    """

    table: str
    reason: str


class SkippedFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Small files of a table whose bins exceed the memory of this process.

    Attributes:
        table: path of the table.
        skipped_files: number of the files.
        skipped_bytes: size of the files.
        command: the command that compacts them with Spark.
    """

    table: str
    skipped_files: int
    skipped_bytes: int
    command: str


@dataclass(frozen=True, slots=True)
class DueTable:
    """A table that has bins to compact.

    Attributes:
        compaction: the compaction of the table.
        bins: its bins; empty if its log can't be read, which the compaction reports as an error.
    """

    compaction: TableCompaction
    bins: Sequence[Bin]

    @property
    def engine(self) -> CompactionEngine:
        """The engine of a run with Spark: a task, if each bin fits into the memory of one."""
        return CompactionEngine.TASK if self.fits(TASK_BYTES) else CompactionEngine.OPTIMIZE

    @property
    def files(self) -> int:
        """The number of files to compact."""
        return sum(len(each.files) for each in self.bins)

    @property
    def bytes(self) -> int:
        """The size of the files to compact."""
        return sum(each.bytes for each in self.bins)

    def fits(self, most_bytes: int) -> bool:
        """Return True if every bin is at most this large."""
        return all(each.bytes <= most_bytes for each in self.bins)


class PlannedCompaction(msgspec.Struct, frozen=True, kw_only=True):
    """The dry run of compacting a table.

    Attributes:
        table: path of the table.
        partitions: number of partitions to compact.
        files: number of files to compact.
        into_files: number of files that replace them.
        bytes: size of the files to compact.
        by: the engine.
    """

    table: str
    partitions: int
    files: int
    into_files: int
    bytes: int
    by: CompactionEngine


@dataclass(frozen=True, slots=True)
class CompactionRun:
    """A run over the append-only tables of a lakehouse; gold tables are rewritten completely and stay compact.

    Attributes:
        store: the store of the lakehouse.
        contract: the games contract, with target sizes and the maintenance policy.
        scope: the size of compacted files.
        today: partitions of earlier days are closed.
        kill: kills the process at a failpoint, for tests.
        most_bytes: upper bound of the size of a bin's files; None for no bound.
    """

    store: Store
    contract: GamesContract
    scope: CompactionScope
    today: date
    kill: Kill | None = None
    most_bytes: int | None = None

    def here(self, most_bytes: int) -> "CompactionRun":
        """Return this run for a process with memory for bins of this size; compacted files are at most this large."""
        return replace(self, most_bytes=most_bytes)

    def due(self, names: Sequence[str] = ()) -> list[DueTable]:
        """Find the tables with bins to compact, and the tables whose log can't be read.

        Args:
            names: the tables to check; empty for all tables of the run.
        """
        wanted = set(names) or set(self.tables())
        plans = [(each, _plan(each)) for each in map(self.of, sorted(wanted))]
        return [DueTable(each, planned or ()) for each, planned in plans if planned != []]

    def tables(self) -> list[str]:
        """List the tables that a run covers."""
        return appended_tables(self.store)

    def of(self, table: str) -> TableCompaction:
        """Return this run's compaction of one table."""
        target = {game.table: game.target_file_bytes for game in self.contract.games}.get(table, _SHARED_TABLE_BYTES)
        if self.scope is CompactionScope.WEEKLY:
            target = max(target, _WEEKLY_BYTES)
        policy = self.contract.maintenance
        rule = CompactionRule(target_bytes=target, hot_files=policy.hot_files, today=self.today)
        rule = rule if self.most_bytes is None else rule.within(self.most_bytes)
        return TableCompaction(self.store.location, table, rule, policy.cluster_by, self.kill)


def _plan(compaction: TableCompaction) -> list[Bin] | None:
    """Return the bins of a table; None if its log can't be read, which `compact_table` reports with the reason."""
    try:
        return compaction.plan()
    except Exception:
        log.exception("table_log_unreadable", table=compaction.table, action="the run continues with the other tables")
        return None


def is_small(due: Sequence[DueTable], most_bytes: int) -> bool:
    """Return True if this process compacts all tables in less time than Spark takes to start.

    Args:
        due: the tables to compact.
        most_bytes: the size of the bins for which this process has memory.
    """
    return sum(each.bytes for each in due) <= _SMALL_RUN_BYTES and all(each.fits(most_bytes) for each in due)


def compact_locally(due: Sequence[DueTable], rest: float = 0.0) -> list[Compacted | NotCompacted]:
    """Compact tables in this process, one after another, with the pauses of `paced`; needs memory for one bin."""
    return list(paced((partial(compact_table, each) for each in due), rest))


def skipped_by(run: CompactionRun, names: Sequence[str] = ()) -> list[SkippedFiles]:
    """Return the small files that a run in this process has left for a run with Spark, by table."""
    return [skipped(run.scope, each) for each in run.due(names) if each.bins]


def skipped(scope: CompactionScope, anywhere: DueTable, here: DueTable | None = None) -> SkippedFiles:
    """Return the small files of a table that this process does not compact.

    Args:
        scope: the scope of the run.
        anywhere: the table's bins for a run with Spark.
        here: its bins for a run in this process; None if they are compacted already.
    """
    table = anywhere.compaction.table
    return SkippedFiles(
        table=table,
        skipped_files=anywhere.files - (here.files if here else 0),
        skipped_bytes=anywhere.bytes - (here.bytes if here else 0),
        command=f"python -m jobs.compact --scope {scope} {table}",
    )


def compact_table(due: DueTable) -> Compacted | NotCompacted:
    """Compact one table; Spark maps this over the tables of a run."""
    table = due.compaction.table
    try:
        return due.compaction()
    except GamelakeError as error:
        return NotCompacted(table=table, reason=str(error))
    except Exception as error:  # one broken table must not stop the others
        return NotCompacted(table=table, reason=f"{type(error).__name__}: {error}")


def planned_compaction(due: DueTable, engine: CompactionEngine) -> PlannedCompaction:
    """Return the dry run of compacting a table with an engine."""
    return PlannedCompaction(
        table=due.compaction.table,
        partitions=len({tuple(each.partition.values()) for each in due.bins}),
        files=due.files,
        into_files=len(due.bins),
        bytes=due.bytes,
        by=engine,
    )


def pending_locally(
    run: CompactionRun, most_bytes: int, names: Sequence[str] = ()
) -> Iterator[PlannedCompaction | SkippedFiles | NotCompacted]:
    """Find the pending compaction of each table.

    Args:
        run: the run.
        most_bytes: this process compacts bins up to this size.
        names: the tables to check; empty for all tables of the run.

    Yields:
        For each table, the compaction in this process, then the files that it skips, if any; or the reason why its log
        can't be read.
    """
    for table in sorted(names) or run.tables():
        try:
            yield from _of_table(run, table, most_bytes)
        except (DeltaError, GamelakeError) as error:
            yield NotCompacted(table=table, reason=f"its log can't be read: {error}")


def _of_table(run: CompactionRun, table: str, most_bytes: int) -> Iterator[PlannedCompaction | SkippedFiles]:
    compaction = run.of(table)
    files = live_files(open_table(compaction.location, table))
    here = DueTable(compaction, bins(files, compaction.rule.within(most_bytes)))
    anywhere = DueTable(compaction, bins(files, compaction.rule))
    # Also if nothing is pending, so that the metric falls to 0.
    yield planned_compaction(here, CompactionEngine.LOCAL)
    if anywhere.files > here.files:
        yield skipped(run.scope, anywhere, here)
