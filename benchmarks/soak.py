"""Measures whether commits get slower, or memory and open files grow, in a long run: `python -m benchmarks.soak`.

Batches are committed to many tables as the streaming driver does it, while maintenance runs concurrently at a high
rate: compaction, vacuum and log cleanup of all tables, and a reader as gold's. The first tenth is warm-up. A slope is
the rise of a straight line over the rest, in per cent of its mean. CPU times are those of the process that commits; the
time of a commit has the waits for cores that maintenance uses as well.
"""

import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from multiprocessing import Queue, get_context
from multiprocessing.synchronize import Event
from pathlib import Path

import numpy as np

from benchmarks.commits import SmallFiles, game_tables
from benchmarks.goals import Goal, figure_of
from benchmarks.harness import Benchmark, Run, main, option
from benchmarks.results import MIB, BenchmarkError, Measurement, Values
from benchmarks.tenths import by_tenth, slope
from gamelake.delta.appends import BatchTransaction
from gamelake.delta.listing import appended_tables
from gamelake.delta.log.codec import live_files
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import DeltaTables, open_table
from gamelake.maintenance.compaction import CompactionRule, TableCompaction
from gamelake.maintenance.log_cleanup import LogCleanup
from gamelake.maintenance.vacuum import TableVacuum
from gamelake.objects.store import Location, Store

_COMMIT_THREADS = 8
_PAGE = resource.getpagesize()
_COMMITS, _SUBJECT = "commits", "commits during maintenance"
# Readers take far less time; older files are deleted, or the disk would fill in a long run.
_RETENTION = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class SoakSettings:
    """Options of the benchmark."""

    batches: int = option(10_000, "batches to commit")
    tables: int = option(32, "tables of each batch")
    pause: float = option(0.0, "seconds between two batches")


@dataclass(slots=True)
class SoakSamples:
    """One entry for each batch."""

    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    open_files: list[int] = field(default_factory=list)


def measure(run: Run[SoakSettings]) -> Iterator[Measurement]:
    """Commit batches while another process maintains their tables.

    Raises:
        BenchmarkError: maintenance failed.
    """
    place = Location(uri=run.folder.as_uri())
    context = get_context("spawn")
    stop, results = context.Event(), context.Queue()
    maintenance = context.Process(target=_run_maintenance, args=(place, stop, results))
    maintenance.start()
    try:
        found = _stream(place, run.settings)
    finally:
        stop.set()
        done, errors = results.get(timeout=600)
        maintenance.join()
    if errors:
        raise BenchmarkError(f"maintenance failed: {errors}")
    yield from _samples(found, done)


def _run_maintenance(place: Location, stop: Event, results: "Queue[tuple[Values, list[str]]]") -> None:
    """Repeat all maintenance tasks until the stream ends, in their own process, as in production."""
    store, done, errors = Store(place), Counter[str](), list[str]()
    rule = CompactionRule(target_bytes=MIB, hot_files=50, today=datetime.now(UTC).date())

    def clean_log(table: str) -> int:
        cleanup = LogCleanup(store=store, since=datetime.now(UTC) - _RETENTION)
        return sum(plan.carry_out(store).deleted_files for plan in cleanup.plans([table]))

    def repeat(name: str, pause: float, work: Callable[[str], int]) -> None:
        while not stop.wait(pause):
            for table in appended_tables(store):
                try:
                    done[name] += 0 if stop.is_set() else work(table)
                except Exception as error:  # maintenance must not end the stream; the run counts as failed
                    errors.append(f"{name}: {type(error).__name__}: {error}")

    tasks: dict[str, tuple[float, Callable[[str], int]]] = {
        "compacted files": (1, lambda table: TableCompaction(place, table, rule)().files_before),
        "vacuumed files": (
            10,
            lambda table: TableVacuum(store, table, datetime.now(UTC) - _RETENTION).run().replaced_files,
        ),
        "deleted log entries": (15, clean_log),
        "reads": (0.5, lambda table: bool(live_files(open_table(place, table)))),
    }
    with ThreadPoolExecutor(len(tasks)) as pool:
        for name, (pause, work) in tasks.items():
            pool.submit(repeat, name, pause, work)
    results.put((dict(done), errors[:5]))


def _stream(place: Location, settings: SoakSettings) -> SoakSamples:
    found, files = SoakSamples(), SmallFiles(place, game_tables(settings.tables))
    with DeltaTables(place) as tables, ThreadPoolExecutor(_COMMIT_THREADS) as pool:
        for version in range(settings.batches):
            batch, transaction = files.next(), BatchTransaction("soak", version)
            started, cpu_before = time.perf_counter(), time.process_time()
            list(pool.map(lambda entry: tables.append(entry, transaction), batch))  # noqa: B023 # done before the next
            found.seconds.append(time.perf_counter() - started)
            found.cpu_seconds.append(time.process_time() - cpu_before)
            found.memory.append(int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE)
            found.open_files.append(sum(1 for _ in Path("/proc/self/fd").iterdir()))
            if not version:
                _forget_soon(place, batch)
            time.sleep(settings.pause)
    return found


def _forget_soon(place: Location, batch: Sequence[TableFiles]) -> None:
    """Shorten the retention of removed files in checkpoints to that of vacuum; the default is a week."""
    kept = {"delta.deletedFileRetentionDuration": f"interval {int(_RETENTION.total_seconds())} seconds"}
    for entry in batch:
        open_table(place, entry.table).alter.set_table_properties(kept)


def _samples(found: SoakSamples, done: Values) -> Iterator[Measurement]:
    """Yield the figures of the whole run, and those of each tenth as a round."""
    p50, p95, most = (float(each) * 1000 for each in np.percentile(found.seconds, (50, 95, 100)))
    slopes = {
        "slope of a commit": slope(found.seconds),
        "slope of its CPU time": slope(found.cpu_seconds),
        "slope of memory": slope(found.memory),
    }
    whole = {"p50 ms": p50, "p95 ms": p95, "max ms": most, **slopes, **done}
    yield Measurement(part=_COMMITS, subject=_SUBJECT, values=whole)
    # The least number of open files: a reader opens all entries of a table's log at once.
    files = found.open_files[len(found.open_files) // 10 :]
    tenths = {
        "p50 ms": [each * 1000 for each in by_tenth(found.seconds, np.median)],
        "CPU ms": [each * 1000 for each in by_tenth(found.cpu_seconds, np.mean)],
        "memory MiB": [each / MIB for each in by_tenth(found.memory, np.max)],
        "open files at least": by_tenth(files, np.min),
        "open files at most": by_tenth(files, np.max),
    }
    for number, values in enumerate(zip(*tenths.values(), strict=True), start=1):
        yield Measurement(part="tenths", subject=_SUBJECT, round=number, values=dict(zip(tenths, values, strict=True)))


BENCHMARK = Benchmark(
    name="soak",
    measures="Measure whether commits get slower, or memory and open files grow, in a long run.",
    settings=SoakSettings(),
    quick=SoakSettings(batches=100, tables=4),
    measure=measure,
    goals=(
        Goal("slope of a commit", (5,), figure_of(_COMMITS, _SUBJECT, "slope of a commit"), " %", at_most=True),
        Goal("slope of its CPU time", (5,), figure_of(_COMMITS, _SUBJECT, "slope of its CPU time"), " %", at_most=True),
        Goal("slope of memory", (2,), figure_of(_COMMITS, _SUBJECT, "slope of memory"), " %", at_most=True),
    ),
    needs_goals=True,
)


if __name__ == "__main__":
    sys.exit(main(BENCHMARK))
