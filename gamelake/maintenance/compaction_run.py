"""A round of compaction over a lakehouse: which tables, up to which size, where, and what became of them."""

import logging
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
from gamelake.storage.delta_log import live_files
from gamelake.storage.listing import appended_tables
from gamelake.storage.store import Store
from gamelake.storage.tables import open_table

T = TypeVar("T")


def paced(pieces: Iterable[Callable[[], T]], rest: float, wait: Callable[[float], object] = time.sleep) -> Iterator[T]:
    """Do one piece after the other.

    Args:
        pieces: what there is to do.
        rest: how many times as long as a piece took nothing is done after it: 3 leaves others three quarters of the
            time. A low priority is not enough: who uses idle cores only still shares memory and caches.
        wait: lets so many seconds pass.
    """
    for piece in pieces:
        started = time.perf_counter()
        done = piece()
        took = time.perf_counter() - started
        yield done
        wait(rest * took)


log = logging.getLogger(__name__)

_MIB = 2**20
_OF_ALL_GAMES = 128 * _MIB
_WEEKLY = 1024 * _MIB
# A bin of more than this is too much for the memory of one task: Spark writes it, on as many machines as it has.
TASK_BYTES = 64 * _MIB
# So much is packed here before a Spark would have started.
_FEW_BYTES = 128 * _MIB


class CompactionScope(StrEnum):
    """How far a round goes."""

    DAILY = "daily"
    WEEKLY = "weekly"


class CompactionEngine(StrEnum):
    """Where a table is packed."""

    HERE = "this process"
    TASK = "a task"
    OPTIMIZE = "Spark's OPTIMIZE"


class NotCompacted(msgspec.Struct, frozen=True, kw_only=True):
    """A table that stayed as it was, and why; the others were not held up."""

    table: str
    reason: str


class SkippedFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Files that could be fewer and were too large to pack here; sizes in bytes, and the command that packs them."""

    table: str
    left_files: int
    left_bytes: int
    command: str


@dataclass(frozen=True, slots=True)
class DueTable:
    """A table that has something to do."""

    compaction: TableCompaction
    bins: Sequence[Bin]

    @property
    def place(self) -> CompactionEngine:
        """Where Spark packs it: in a task, if each bin can be packed in the memory of one."""
        return CompactionEngine.TASK if self.fits(TASK_BYTES) else CompactionEngine.OPTIMIZE

    @property
    def files(self) -> int:
        """How many files there are to pack."""
        return sum(len(each.files) for each in self.bins)

    @property
    def bytes(self) -> int:
        """What they take."""
        return sum(each.bytes for each in self.bins)

    def fits(self, most_bytes: int) -> bool:
        """Whether no bin is larger."""
        return all(each.bytes <= most_bytes for each in self.bins)


class PlannedCompaction(msgspec.Struct, frozen=True, kw_only=True):
    """What a round would do to a table; sizes in bytes."""

    table: str
    partitions: int
    files: int
    into_files: int
    bytes: int
    by: CompactionEngine


@dataclass(frozen=True, slots=True)
class CompactionRun:
    """All tables of a lakehouse that are only appended to: who rewrites a gold table keeps its files in good order."""

    store: Store
    contract: GamesContract
    kind: CompactionScope
    today: date
    kill: Kill | None = None
    most_bytes: int | None = None

    def here(self, most_bytes: int) -> "CompactionRun":
        """The same round for a process that has the memory for bins of so much: its files are no larger."""
        return replace(self, most_bytes=most_bytes)

    def due(self, names: Sequence[str] = ()) -> list[DueTable]:
        """The tables that have something to do, of all or of those that are named, and those that can't be seen."""
        wanted = set(names) or set(self.tables())
        plans = [(each, _plan(each)) for each in map(self.of, sorted(wanted))]
        return [DueTable(each, planned or ()) for each, planned in plans if planned != []]

    def tables(self) -> list[str]:
        """The tables that a round looks at."""
        return appended_tables(self.store)

    def of(self, table: str) -> TableCompaction:
        """A table, and what this round aims at there."""
        target = {game.table: game.target_file_bytes for game in self.contract.games}.get(table, _OF_ALL_GAMES)
        if self.kind is CompactionScope.WEEKLY:
            target = max(target, _WEEKLY)
        policy = self.contract.maintenance
        rule = CompactionRule(target_bytes=target, hot_files=policy.hot_files, today=self.today)
        rule = rule if self.most_bytes is None else rule.within(self.most_bytes)
        return TableCompaction(self.store.location, table, rule, policy.cluster_by, self.kill)


def _plan(compaction: TableCompaction) -> list[Bin] | None:
    """What a table has to do; None where that can't be seen, which the attempt then tells with its reason."""
    try:
        return compaction.plan()
    except Exception:
        log.exception("%s can't be looked at; the other tables are packed", compaction.table)
        return None


def is_small(due: Sequence[DueTable], most_bytes: int) -> bool:
    """Whether all of it is packed here sooner than Spark would have started."""
    return sum(each.bytes for each in due) <= _FEW_BYTES and all(each.fits(most_bytes) for each in due)


def compact_locally(due: Sequence[DueTable], rest: float = 0.0) -> list[Compacted | NotCompacted]:
    """Pack tables in this process, one after the other, with a rest after each: the memory is that of one bin."""
    return list(paced((partial(compact_table, each) for each in due), rest))


def skipped_by(of_all: CompactionRun, names: Sequence[str] = ()) -> list[SkippedFiles]:
    """What a round that was run here has left for one with Spark."""
    return [skipped(of_all.kind, each) for each in of_all.due(names) if each.bins]


def skipped(kind: CompactionScope, anywhere: DueTable, here: DueTable | None = None) -> SkippedFiles:
    """What of all that could be packed of a table is not packed here."""
    table = anywhere.compaction.table
    return SkippedFiles(
        table=table,
        left_files=anywhere.files - (here.files if here else 0),
        left_bytes=anywhere.bytes - (here.bytes if here else 0),
        command=f"python -m jobs.compact --round {kind} {table}",
    )


def compact_table(due: DueTable) -> Compacted | NotCompacted:
    """Pack one table; what Spark maps over the tables of a round."""
    table = due.compaction.table
    try:
        return due.compaction()
    except GamelakeError as error:
        return NotCompacted(table=table, reason=str(error))
    except Exception as error:  # one game's table must not hold up another's, whatever is wrong with it
        return NotCompacted(table=table, reason=f"{type(error).__name__}: {error}")


def planned_compaction(due: DueTable, place: CompactionEngine) -> PlannedCompaction:
    """What would be done to a table, and where."""
    return PlannedCompaction(
        table=due.compaction.table,
        partitions=len({tuple(each.partition.values()) for each in due.bins}),
        files=due.files,
        into_files=len(due.bins),
        bytes=due.bytes,
        by=place,
    )


def pending_locally(
    of_all: CompactionRun, most_bytes: int, names: Sequence[str] = ()
) -> Iterator[PlannedCompaction | SkippedFiles | NotCompacted]:
    """What waits in each table, of all or of those that are named; bins of `most_bytes` at most are packed here."""
    for table in sorted(names) or of_all.tables():
        try:
            yield from _of_table(of_all, table, most_bytes)
        except (DeltaError, GamelakeError) as error:
            yield NotCompacted(table=table, reason=f"its log can't be read: {error}")


def _of_table(of_all: CompactionRun, table: str, most_bytes: int) -> Iterator[PlannedCompaction | SkippedFiles]:
    compaction = of_all.of(table)
    files = live_files(open_table(compaction.location, table))
    here = DueTable(compaction, bins(files, compaction.rule.within(most_bytes)))
    anywhere = DueTable(compaction, bins(files, compaction.rule))
    # Also where nothing is to be done: whoever follows what waits must see that it came to nothing.
    yield planned_compaction(here, CompactionEngine.HERE)
    if anywhere.files > here.files:
        yield skipped(of_all.kind, anywhere, here)
