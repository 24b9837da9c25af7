"""A compaction run over a lakehouse: which tables, up to which file size, in this process or with Spark."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum
from functools import partial
from typing import TypeVar

import msgspec
from deltalake.exceptions import DeltaError

from gamelake.maintenance.compaction import Bin, Compacted, CompactionRule, TableCompaction, bins
from gamelake.model.errors import GamelakeError
from gamelake.model.failpoints import Kill
from gamelake.model.games import GamesContract
from gamelake.model.logs import event_logger
from gamelake.storage.delta_log import live_files
from gamelake.storage.listing import appended_tables
from gamelake.storage.store import Store
from gamelake.storage.tables import open_table

log = event_logger(__name__)

_MIB = 2**20
_SHARED_TABLE_BYTES = 128 * _MIB
_WEEKLY_BYTES = 1024 * _MIB
# A larger bin exceeds the memory of one Spark task: OPTIMIZE writes it, on as many executors as there are.
TASK_BYTES = 64 * _MIB
# This process compacts so much before a Spark session would have started.
_SMALL_RUN_BYTES = 128 * _MIB
T = TypeVar("T")


def paced(pieces: Iterable[Callable[[], T]], rest: float, wait: Callable[[float], object] = time.sleep) -> Iterator[T]:
    """Run pieces of work one after the other, with a pause after each.

    Args:
        pieces: the work.
        rest: length of the pause, as a multiple of the time that the piece took: 3 leaves three quarters of the time to
            other processes. A low priority is not enough, as a process on idle cores still shares memory and caches.
        wait: sleeps for a number of seconds.
    """
    for piece in pieces:
        started = time.perf_counter()
        done = piece()
        took = time.perf_counter() - started
        yield done
        wait(rest * took)


class CompactionScope(StrEnum):
    """How large the files become: daily up to the table's target size, weekly up to 1 GiB."""

    DAILY = "daily"
    WEEKLY = "weekly"


class CompactionEngine(StrEnum):
    """What compacts a table."""

    LOCAL = "this process"
    TASK = "a task"
    OPTIMIZE = "Spark's OPTIMIZE"


class NotCompacted(msgspec.Struct, frozen=True, kw_only=True):
    """A table that could not be compacted, and why; the run went on with the others."""

    table: str
    reason: str


class SkippedFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Small files whose bins exceed the memory of this process; size in bytes, and the command that compacts them."""

    table: str
    skipped_files: int
    skipped_bytes: int
    command: str


@dataclass(frozen=True, slots=True)
class DueTable:
    """A table that has bins to compact."""

    compaction: TableCompaction
    bins: Sequence[Bin]

    @property
    def engine(self) -> CompactionEngine:
        """How Spark compacts the table: in a task, if each bin fits into the memory of one."""
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
        """Whether no bin is larger than this."""
        return all(each.bytes <= most_bytes for each in self.bins)


class PlannedCompaction(msgspec.Struct, frozen=True, kw_only=True):
    """What a run would do to a table (dry run); size in bytes."""

    table: str
    partitions: int
    files: int
    into_files: int
    bytes: int
    by: CompactionEngine


@dataclass(frozen=True, slots=True)
class CompactionRun:
    """A run over the append-only tables of a lakehouse; gold tables are rewritten as a whole and stay compact."""

    store: Store
    contract: GamesContract
    scope: CompactionScope
    today: date
    kill: Kill | None = None
    most_bytes: int | None = None

    def here(self, most_bytes: int) -> "CompactionRun":
        """The same run for a process with memory for bins of this size only; its files are no larger."""
        return replace(self, most_bytes=most_bytes)

    def due(self, names: Sequence[str] = ()) -> list[DueTable]:
        """The tables with bins to compact, of all or of the named ones; and the tables whose log can't be read."""
        wanted = set(names) or set(self.tables())
        plans = [(each, _plan(each)) for each in map(self.of, sorted(wanted))]
        return [DueTable(each, planned or ()) for each, planned in plans if planned != []]

    def tables(self) -> list[str]:
        """The tables that a run covers."""
        return appended_tables(self.store)

    def of(self, table: str) -> TableCompaction:
        """The compaction of one table by this run."""
        target = {game.table: game.target_file_bytes for game in self.contract.games}.get(table, _SHARED_TABLE_BYTES)
        if self.scope is CompactionScope.WEEKLY:
            target = max(target, _WEEKLY_BYTES)
        policy = self.contract.maintenance
        rule = CompactionRule(target_bytes=target, hot_files=policy.hot_files, today=self.today)
        rule = rule if self.most_bytes is None else rule.within(self.most_bytes)
        return TableCompaction(self.store.location, table, rule, policy.cluster_by, self.kill)


def _plan(compaction: TableCompaction) -> list[Bin] | None:
    """The bins of a table; None where its log can't be read, which `compact_table` then reports with its reason."""
    try:
        return compaction.plan()
    except Exception:
        log.exception("table_log_unreadable", table=compaction.table, action="the run goes on with the other tables")
        return None


def is_small(due: Sequence[DueTable], most_bytes: int) -> bool:
    """Whether this process compacts all tables sooner than Spark would have started."""
    return sum(each.bytes for each in due) <= _SMALL_RUN_BYTES and all(each.fits(most_bytes) for each in due)


def compact_locally(due: Sequence[DueTable], rest: float = 0.0) -> list[Compacted | NotCompacted]:
    """Compact tables in this process, one after the other, with a pause after each; needs memory for one bin."""
    return list(paced((partial(compact_table, each) for each in due), rest))


def skipped_by(run: CompactionRun, names: Sequence[str] = ()) -> list[SkippedFiles]:
    """What a run in this process has left for a run with Spark."""
    return [skipped(run.scope, each) for each in run.due(names) if each.bins]


def skipped(scope: CompactionScope, anywhere: DueTable, here: DueTable | None = None) -> SkippedFiles:
    """The small files of a table that this process does not compact."""
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
    """What a run would do to a table, and with which engine."""
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
    """What is pending in each table, of all or of the named ones; this process compacts bins up to `most_bytes`."""
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
    # Also where nothing is pending, so that the metric falls to 0.
    yield planned_compaction(here, CompactionEngine.LOCAL)
    if anywhere.files > here.files:
        yield skipped(run.scope, anywhere, here)
