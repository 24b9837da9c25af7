"""The tasks of the year, each run in a process of its own, so that its memory can be measured."""

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event

import msgspec

from benchmarks.year.listings import counted_listings
from benchmarks.year.plan import SimulatedClock, YearPlan
from benchmarks.year.stream import FILES_STREAM, STREAM, TOPIC, TOPIC_ID
from gamelake.contract.games import GamesContract, load_games
from gamelake.contract.schedule import ScheduledTask
from gamelake.delta.listing import own_tables, table_paths
from gamelake.ledger.held_tables import stream_tables
from gamelake.ledger.reconciliation import reconcile
from gamelake.maintenance.compaction_run import (
    CompactionRun,
    CompactionScope,
    NotCompacted,
    compact_locally,
    pending_locally,
)
from gamelake.maintenance.log_cleanup import LogCleanup
from gamelake.maintenance.program_runs import ProgramRun
from gamelake.maintenance.run_records import WorkDone
from gamelake.maintenance.vacuum import TableVacuum, undecided_files
from gamelake.model.naming import Layer
from gamelake.objects.store import Location, Store, require_put_if_absent
from gamelake.streaming.dedup.cross_source import ConcurrentFilesStream, ConcurrentStream
from gamelake.streaming.dedup.window import DedupLimits, DedupWindow
from gamelake.streaming.driver.runner import finish_last_batch
from gamelake.streaming.driver.stream import Stream
from tools.embedded.service import REPOSITORY

# As the jobs have them.
_TABLES_AT_ONCE, _LOCAL_BYTES, _REMEMBERED_BATCHES = 2, 64 * 2**20, 20
_STREAMS_LAYERS = (Layer.BRONZE, Layer.SILVER, Layer.DEAD_LETTERS, Layer.QUARANTINE)
_STATUS, _RESET_PEAK = Path("/proc/self/status"), (Path("/proc/self/clear_refs"), "5")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRequest:
    """A run of a task.

    Attributes:
        today: the simulated day.
        since: the retention, by the real clock.
        day_began: when the simulated day began, by the real clock.
    """

    location: Location
    job: str
    arguments: tuple[str, ...]
    today: date
    since: datetime
    day_began: datetime
    keep_manifests: int
    window: timedelta


class TaskSample(msgspec.Struct, frozen=True, kw_only=True):
    """What one run of a task took.

    Attributes:
        batch: the batches that there were before.
        grown_kib: by how much the process grew at most, in KiB.
        listed: objects in the listings that it asked for.
        work: files compacted or deleted, or problems found, by the task.
        problem: why it failed, empty if it did not.
    """

    task: str
    batch: int
    seconds: float
    cpu_seconds: float
    grown_kib: int
    listed: int
    work: int
    problem: str = ""


def compact(request: TaskRequest) -> int:
    """Compact small files as `jobs.compact --no-spark` does, without its pauses. Return how many."""
    done = compact_locally(_compaction(request).here(_LOCAL_BYTES).due())
    if failed := [each for each in done if isinstance(each, NotCompacted)]:
        raise RuntimeError(f"{failed[0].table} was not compacted: {failed[0].reason}")
    return sum(each.files_before for each in done if not isinstance(each, NotCompacted))


def measure_tables(request: TaskRequest) -> int:
    """Measure the pending work as the scheduler does each hour, and return the number of reports."""
    return len(list(pending_locally(_compaction(request), _LOCAL_BYTES)))


def _compaction(request: TaskRequest) -> CompactionRun:
    scope = CompactionScope.WEEKLY if CompactionScope.WEEKLY in request.arguments else CompactionScope.DAILY
    return CompactionRun(Store(request.location), _contract(), scope, request.today)


def _contract() -> GamesContract:
    return load_games(REPOSITORY / "contracts" / "games.yaml")


def vacuum(request: TaskRequest) -> int:
    """Delete files as `jobs.vacuum` does. Return how many."""
    store = Store(request.location)
    undecided = undecided_files(store)
    vacuums = [TableVacuum(store, each, request.since, undecided) for each in table_paths(store)]
    with ThreadPoolExecutor(_TABLES_AT_ONCE) as pool:
        would = list(pool.map(TableVacuum.plan, vacuums))
    return sum(each.run().files for each, planned in zip(vacuums, would, strict=True) if planned.files)


def clean_logs(request: TaskRequest) -> int:
    """Compact and delete old history as `jobs.clean_logs` does. Return how many objects were deleted."""
    store = Store(request.location)
    before = max(request.since, request.day_began)
    cleanup = LogCleanup(store=store, since=request.since, compact_before=before, keep_manifests=request.keep_manifests)
    done = [plan.carry_out(store) for plan in cleanup.plans(own_tables(store))]
    if kept := [each for each in done if each.kept]:
        raise RuntimeError(f"{kept[0].what} was kept: {kept[0].kept}")
    return sum(each.deleted_files for each in done)


def verify(request: TaskRequest) -> int:
    """Reconcile as `jobs.verify` does. Return the number of batches."""
    found = reconcile(Store(request.location))
    if found.problems:
        raise RuntimeError(f"{len(found.problems)} problems: {found.problems[0]}")
    return found.batches


def start(request: TaskRequest) -> int:
    """Read what a driver of the stream reads before its first batch, and return the number of tables."""
    store = Store(request.location)
    require_put_if_absent(store)
    with stream_tables(request.location) as tables:
        stream = Stream(store, STREAM, TOPIC)
        finish_last_batch(stream, tables)
        generation = stream.open(TOPIC_ID)
        finish_last_batch(stream, tables, has_concurrent_stream=False)
        folders = [folder for layer in _STREAMS_LAYERS for folder in store.folders(f"{layer}/")]
        schemas = {each: tables.schema(each) for each in folders if tables.partition_columns(each)}
        stream.manifests.last(_REMEMBERED_BATCHES)
        window = DedupWindow(store, STREAM, DedupLimits(window=request.window))
        window.resume(stream.manifests)
        window.plan(generation.query_id, 0)
        ConcurrentFilesStream(ConcurrentStream(store, FILES_STREAM)).refresh()
    return len(schemas)


_TASKS: Mapping[str, Callable[[TaskRequest], int]] = {
    each.__name__: each for each in (compact, measure_tables, vacuum, clean_logs, verify, start)
}


def run_task(request: TaskRequest, answer: Connection) -> None:
    """Run a task in this process, and send its sample: task and batch are the caller's to add."""
    gc.collect()
    file, command = _RESET_PEAK
    file.write_text(command)
    before, problem, work = _kib("VmRSS"), "", 0
    started, cpu = time.perf_counter(), time.process_time()
    with counted_listings() as listings:
        try:
            work = _TASKS[request.job](request)
        except Exception as error:  # the sample reports it
            problem = f"{type(error).__name__}: {error}"
    sample = TaskSample(
        task=request.job,
        batch=0,
        seconds=time.perf_counter() - started,
        cpu_seconds=time.process_time() - cpu,
        grown_kib=_kib("VmHWM") - before,
        listed=listings.objects,
        work=work,
        problem=problem,
    )
    answer.send(sample)


def _kib(name: str) -> int:
    return next(int(line.split()[1]) for line in _STATUS.read_text().splitlines() if line.startswith(f"{name}:"))


class TaskProcesses:
    """Runs the scheduler's tasks in processes of their own; `samples` are those of all runs so far."""

    def __init__(self, location: Location, plan: YearPlan, clock: SimulatedClock) -> None:
        self._location, self._plan, self._clock = location, plan, clock
        self._batch = 0
        self.samples: list[TaskSample] = []
        # Its server has imported all this; a fork of this process would inherit locks of its threads.
        self._context = get_context("forkserver")
        self._context.set_forkserver_preload([__name__])

    def after_batch(self, number: int) -> None:
        """Note that the next samples are of runs after a number of batches."""
        self._batch = number

    def run(self, scheduled: ScheduledTask, stop: Event) -> ProgramRun:
        """Run a task to its end."""
        del stop
        sample = msgspec.structs.replace(self._run(scheduled), task=scheduled.name, batch=self._batch)
        self.samples.append(sample)
        return ProgramRun(WorkDone(deleted_files=sample.work), sample.seconds, sample.problem)

    def _run(self, scheduled: ScheduledTask) -> TaskSample:
        now = self._clock.now()
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        request = TaskRequest(
            location=self._location,
            job=scheduled.job,
            arguments=scheduled.arguments,
            today=now.date(),
            since=self._clock.real(now - self._plan.retention),
            day_began=self._clock.real(midnight),
            keep_manifests=self._plan.keep_manifests,
            window=self._plan.window,
        )
        ours, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(target=run_task, args=(request, theirs))
        process.start()
        theirs.close()
        with closing(ours):
            sample: TaskSample = ours.recv()
        process.join()
        return sample


def failures(samples: list[TaskSample]) -> Iterator[str]:
    """The runs that failed, in a sentence each."""
    return (f"{each.task} after batch {each.batch}: {each.problem}" for each in samples if each.problem)
