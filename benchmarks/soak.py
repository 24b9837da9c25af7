"""Measures whether commits get slower, or memory and open files grow, in a long run: `python -m benchmarks.soak`.

Batches are committed to many tables as the streaming driver does it, while maintenance runs concurrently at a high
rate: compaction, vacuum and log cleanup of all tables, and a reader as gold's. The first tenth is warm-up. A slope is
the rise of a straight line over the rest, in per cent of its mean. CPU times are those of the process that commits; the
time of a commit has the waits for cores that maintenance uses as well.
"""

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from multiprocessing import Queue, get_context
from multiprocessing.synchronize import Event
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np

from benchmarks.commits import SmallFiles, game_tables
from benchmarks.tenths import by_tenth, slope
from gamelake.maintenance.compaction import CompactionRule, TableCompaction
from gamelake.maintenance.log_cleanup import LogCleanup
from gamelake.maintenance.vacuum import TableVacuum
from gamelake.storage.appends import BatchTransaction
from gamelake.storage.delta_log import live_files
from gamelake.storage.listing import appended_tables
from gamelake.storage.manifests import TableFiles
from gamelake.storage.store import Location, Store
from gamelake.storage.tables import DeltaTables, open_table

_COMMIT_THREADS = 8
_PAGE = resource.getpagesize()
_MIB = 2**20
# Readers take far less time; older files are deleted, or the disk would fill in a long run.
_RETENTION = timedelta(seconds=60)
_AT_MOST = {"commit_slope": 5.0, "commit_cpu_slope": 5.0, "memory_slope": 2.0}


@dataclass(slots=True)
class SoakSamples:
    """One entry for each batch."""

    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    open_files: list[int] = field(default_factory=list)


def main() -> int:
    """Measure, and print the results as JSON; 1 if a slope is above its bound."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--batches", type=int, default=10_000, help="default: %(default)s")
    parser.add_argument("--tables", type=int, default=32, help="default: %(default)s")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between two batches; default: %(default)s")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gamelake-soak-") as folder:
        place = Location(uri=Path(folder).as_uri())
        context = get_context("spawn")
        stop, results = context.Event(), context.Queue()
        maintenance = context.Process(target=_run_maintenance, args=(place, stop, results))
        maintenance.start()
        try:
            found = _stream(place, arguments)
        finally:
            stop.set()
            done = results.get(timeout=600)
            maintenance.join()
    return _print(found, done)


def _run_maintenance(place: Location, stop: Event, results: "Queue[dict[str, Any]]") -> None:
    """All maintenance tasks, in their own process, as in production."""
    maintenance = _Maintenance(Store(place), stop)
    threads = [
        Thread(target=work)
        for work in (maintenance.compact, maintenance.vacuum, maintenance.clean_logs, maintenance.read)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results.put(
        {
            "packed_files": maintenance.compacted,
            "vacuumed_files": maintenance.vacuumed,
            "tidied_files": maintenance.deleted_entries,
            "reads": maintenance.reads,
            "errors": maintenance.errors[:5],
        }
    )


def _stream(place: Location, arguments: argparse.Namespace) -> SoakSamples:
    found, files = SoakSamples(), SmallFiles(place, game_tables(arguments.tables))
    with DeltaTables(place) as tables, ThreadPoolExecutor(_COMMIT_THREADS) as pool:
        for version in range(arguments.batches):
            batch, transaction = files.next(), BatchTransaction("soak", version)
            started, cpu_before = time.perf_counter(), time.process_time()
            list(pool.map(lambda entry: tables.append(entry, transaction), batch))  # noqa: B023 # done before the next
            found.seconds.append(time.perf_counter() - started)
            found.cpu_seconds.append(time.process_time() - cpu_before)
            found.memory.append(int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE)
            found.open_files.append(sum(1 for _ in Path("/proc/self/fd").iterdir()))
            if not version:
                _forget_soon(place, batch)
            time.sleep(arguments.pause)
    return found


def _forget_soon(place: Location, batch: Sequence[TableFiles]) -> None:
    """Shorten the retention of removed files in checkpoints to that of vacuum; the default is a week."""
    kept = {"delta.deletedFileRetentionDuration": f"interval {int(_RETENTION.total_seconds())} seconds"}
    for entry in batch:
        open_table(place, entry.table).alter.set_table_properties(kept)


@dataclass(slots=True)
class _Maintenance:
    """Maintenance concurrent with the stream, until it is stopped; errors are collected."""

    store: Store
    stop: Event
    compacted: int = 0
    vacuumed: int = 0
    deleted_entries: int = 0
    reads: int = 0
    errors: list[str] = field(default_factory=list)

    def compact(self) -> None:
        rule = CompactionRule(target_bytes=_MIB, hot_files=50, today=datetime.now(UTC).date())
        while not self.stop.wait(1):
            for table in self._tables():
                self._try(lambda: self._compact(TableCompaction(self.store.location, table, rule)))  # noqa: B023 # at once

    def vacuum(self) -> None:
        while not self.stop.wait(10):
            for table in self._tables():
                self._try(lambda: self._vacuum(table))  # noqa: B023 # at once

    def clean_logs(self) -> None:
        while not self.stop.wait(15):
            self._try(self._clean_logs)

    def read(self) -> None:
        while not self.stop.wait(0.5):
            for table in self._tables():
                self._try(lambda: self._read(table))  # noqa: B023 # at once

    def _tables(self) -> Sequence[str]:
        return [] if self.stop.is_set() else appended_tables(self.store)

    def _compact(self, compaction: TableCompaction) -> None:
        self.compacted += compaction().files_before

    def _vacuum(self, table: str) -> None:
        vacuum = TableVacuum(self.store, table, datetime.now(UTC) - _RETENTION)
        self.vacuumed += vacuum.run().replaced_files

    def _clean_logs(self) -> None:
        cleanup = LogCleanup(store=self.store, since=datetime.now(UTC) - _RETENTION)
        self.deleted_entries += sum(plan.carry_out(self.store).deleted_files for plan in cleanup.plans(self._tables()))

    def _read(self, table: str) -> None:
        self.reads += len(live_files(open_table(self.store.location, table))) > 0

    def _try(self, work: Callable[[], None]) -> None:
        if self.stop.is_set():
            return
        try:
            work()
        except Exception as error:  # maintenance must not end the stream; the run counts as failed
            self.errors.append(f"{type(error).__name__}: {error}")


def _print(found: SoakSamples, done: Mapping[str, Any]) -> int:
    slopes = {
        "commit_slope": slope(found.seconds),
        "commit_cpu_slope": slope(found.cpu_seconds),
        "memory_slope": slope(found.memory),
    }
    files = found.open_files[len(found.open_files) // 10 :]
    figures = {
        "batches": len(found.seconds),
        "commit_ms": [round(float(each) * 1000, 1) for each in np.percentile(found.seconds, (50, 95, 100))],
        "commit_ms_by_tenth": [round(each * 1000, 1) for each in by_tenth(found.seconds, np.median)],
        "commit_cpu_ms_by_tenth": [round(each * 1000, 1) for each in by_tenth(found.cpu_seconds, np.mean)],
        **{name: round(value, 2) for name, value in slopes.items()},
        "memory_mib": [min(found.memory) // _MIB, max(found.memory) // _MIB],
        # The least number per tenth: a reader opens all entries of a table's log at once.
        "open_files": {"least": [int(each) for each in by_tenth(files, np.min)], "most": max(files)},
        **done,
    }
    print(json.dumps(figures))
    return int(bool(done["errors"]) or any(slopes[name] > bound for name, bound in _AT_MOST.items()))


if __name__ == "__main__":
    sys.exit(main())
