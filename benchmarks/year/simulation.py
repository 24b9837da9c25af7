"""Simulates the year: batches, the scheduler after each of them, and an inventory after each tenth."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from threading import Event

import msgspec

from benchmarks.year.listings import counted_listings
from benchmarks.year.plan import SimulatedClock, YearPlan
from benchmarks.year.stream import BatchSample, YearStream
from benchmarks.year.tasks import TaskProcesses, TaskSample
from gamelake.delta.log.codec import live_paths
from gamelake.delta.tables import open_table
from gamelake.layers.silver import EVENT_DATE
from gamelake.maintenance.scheduler import Scheduler
from gamelake.objects.store import Location, Store

KINDS = ("data files", "log entries", "Delta checkpoints", "manifests", "compacted history", "other")


class StoredKind(msgspec.Struct, frozen=True, kw_only=True):
    """Objects of one kind, and their size in bytes."""

    objects: int = 0
    bytes: int = 0


class Inventory(msgspec.Struct, frozen=True, kw_only=True):
    """The objects of a lakehouse by kind, and the live files of the past days of all tables."""

    kinds: dict[str, StoredKind]
    live_files: int

    @property
    def objects(self) -> int:
        """All objects."""
        return sum(each.objects for each in self.kinds.values())


@dataclass(slots=True)
class YearSamples:
    """The batches in order, the runs of tasks in order, and the inventory after each tenth."""

    batches: list[BatchSample] = field(default_factory=list)
    tasks: list[TaskSample] = field(default_factory=list)
    inventories: list[Inventory] = field(default_factory=list)


def simulate(place: Location, plan: YearPlan, schedule: Path, emit: Callable[[str], None]) -> YearSamples:
    """Let an empty lakehouse live.

    Args:
        place: the lakehouse.
        plan: for how long.
        schedule: of the maintenance tasks.
        emit: called with a line after each tenth.
    """
    clock, found = SimulatedClock(plan), YearSamples()
    processes = TaskProcesses(place, plan, clock)
    scheduler = Scheduler(Store(place), plan.tasks(schedule), processes, now=clock.now)
    clock.next_batch()
    scheduler.begin()
    with counted_listings() as listings, YearStream(place, plan, clock, listings) as stream:
        for number in range(plan.batches):
            found.batches.append(stream.run_batch(number))
            processes.after_batch(number + 1)
            scheduler.run_due(Event())
            if number + 1 in plan.ends:
                found.inventories.append(inventory(place, stream.tables, clock.now().date()))
                emit(
                    f"{number + 1:,} batches, {found.inventories[-1].objects:,} objects, "
                    f"{len(processes.samples):,} runs"
                )
                # The pace of the simulated time changes with the machine's.
                real = clock.real(clock.now()) - clock.real(clock.now() - plan.tombstones)
                stream.keep_tombstones(real)
            clock.next_batch()
    found.tasks = processes.samples
    return found


def inventory(place: Location, tables: Sequence[str], today: date) -> Inventory:
    """Count the objects of a lakehouse; the files of today are not compacted yet, and count as no live files."""
    counts = dict.fromkeys(KINDS, StoredKind())
    for each in Store(place).objects(""):
        kind = _kind(each.path)
        counts[kind] = StoredKind(objects=counts[kind].objects + 1, bytes=counts[kind].bytes + each.size)
    paths = (path for table in tables for path in live_paths(open_table(place, table)))
    live = sum(1 for path in paths if not path.startswith(f"{EVENT_DATE}={today}/"))
    return Inventory(kinds=counts, live_files=live)


def _kind(path: str) -> str:
    if "/_delta_log/" in path:
        return "log entries" if path.endswith(".json") else "Delta checkpoints"
    if path.startswith("_gamelake/history/"):
        return "compacted history"
    if "/manifests/" in path:
        return "manifests"
    return "other" if path.startswith("_gamelake/") else "data files"
