"""Tasks run when they are due, one at a time over all processes, and a failed one stops no other."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event

import pytest

from gamelake.contract.schedule import ScheduledTask
from gamelake.maintenance import program_runs
from gamelake.maintenance.program_runs import ProgramRun, ProgramRunner, RunOutcome, work_done
from gamelake.maintenance.run_records import TaskRecords, WorkDone
from gamelake.maintenance.scheduler import Scheduler
from gamelake.objects.store import Store
from tests.support.failing import failing
from tests.support.logged import logged

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
PACK = ScheduledTask(name="pack", when="every 1 hours", job="compact")
SWEEP = ScheduledTask(name="sweep", when="every 1 hours", job="vacuum")


class Clock:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.time = NOON

    def __call__(self) -> datetime:
        return self.time


class Runs:
    """Runs nothing, and returns the given results."""

    def __init__(self, during: Callable[[ScheduledTask], None] = lambda _: None) -> None:
        self.names: list[str] = []
        self.failing: set[str] = set()
        self._during = during

    def run(self, scheduled: ScheduledTask, stop: Event) -> ProgramRun:
        self.names.append(scheduled.name)
        self._during(scheduled)
        return ProgramRun(WorkDone(compacted_files=7), 1.5, "ended with 1" if scheduled.name in self.failing else "")


@pytest.fixture
def clock() -> Clock:
    return Clock()


def scheduler(store: Store, runs: Runs, clock: Clock) -> Scheduler:
    ours = Scheduler(store, (PACK, SWEEP), runs, now=clock)
    ours.begin()
    return ours


def test_nothing_runs_before_its_turn_and_all_that_is_due_runs_in_order(store: Store, clock: Clock) -> None:
    runs = Runs()
    ours = scheduler(store, runs, clock)

    assert ours.run_due(Event()) == []
    clock.time += timedelta(minutes=61)
    reports = ours.run_due(Event())

    assert runs.names == ["pack", "sweep"]
    assert [(each.task, each.outcome, each.compacted_files) for each in reports] == [
        ("pack", RunOutcome.OK, 7),
        ("sweep", RunOutcome.OK, 7),
    ]
    assert ours.run_due(Event()) == []


def test_what_ran_is_known_after_a_restart_and_what_was_missed_is_made_up_for_once(store: Store, clock: Clock) -> None:
    scheduler(store, Runs(), clock)
    clock.time += timedelta(days=3)
    after_restart = Runs()

    scheduler(store, after_restart, clock).run_due(Event())
    scheduler(store, after_restart, clock).run_due(Event())

    assert after_restart.names == ["pack", "sweep"]


def test_a_task_that_fails_is_reported_and_stops_no_other(
    store: Store, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    runs = Runs()
    runs.failing = {"pack"}
    ours = scheduler(store, runs, clock)
    clock.time += timedelta(hours=1)

    pack, sweep = ours.run_due(Event())

    assert (pack.outcome, pack.problem, sweep.outcome) == (RunOutcome.FAILED, "ended with 1", RunOutcome.OK)
    assert pack.next_at == clock.time + timedelta(minutes=15)
    lines = [*logged(caplog, "task_failed"), *logged(caplog, "task_finished")]
    assert [(line["task"], line["outcome"]) for line in lines] == [("pack", "failed"), ("sweep", "ok")]
    record = TaskRecords(store).of("pack", clock.time)
    assert (record.failures, record.runs_failed, record.done.compacted_files) == (1, 1, 7)


def test_two_processes_never_run_tasks_at_once(store: Store, clock: Clock) -> None:
    other_runs = Runs()

    def while_another_reads(_: ScheduledTask) -> None:
        # This takes a while: it checks whether the holder is alive.
        assert scheduler(store, other_runs, clock).run_due(Event()) == []

    ours = scheduler(store, Runs(while_another_reads), clock)
    clock.time += timedelta(hours=1)
    reports = [ours._if_due(PACK, Event())]  # noqa: SLF001 # one run is enough: each attempt costs two seconds

    assert [each.task for each in reports if each] == ["pack"]
    assert other_runs.names == []


def test_one_that_another_process_has_run_meanwhile_is_not_run_again(store: Store, clock: Clock) -> None:
    runs, others = Runs(), Runs()
    ours = scheduler(store, runs, clock)
    clock.time += timedelta(hours=1)
    due = [each.scheduled for each in ours.plan()]

    scheduler(store, others, clock).run_due(Event())

    assert [ours._if_due(each, Event()) for each in due] == [None, None]  # noqa: SLF001 # between looking and running
    assert runs.names == []


def test_a_requested_task_runs_due_or_not(store: Store, clock: Clock) -> None:
    report = scheduler(store, Runs(), clock).once(SWEEP, Event())

    assert (report.task, report.outcome) == ("sweep", RunOutcome.OK)
    assert TaskRecords(store).of("sweep", NOON).succeeded_at == NOON


def test_it_ends_after_the_task_that_runs(store: Store, clock: Clock) -> None:
    stop = Event()
    runs = Runs(lambda _: stop.set())
    ours = scheduler(store, runs, clock)
    clock.time += timedelta(hours=1)

    ours.until(stop)

    assert runs.names == ["pack"]


def test_a_store_that_is_away_is_waited_for(store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    wells: list[int] = []
    stop = Event()

    def well() -> None:
        wells.append(1)
        stop.set()

    ours = Scheduler(store, (PACK,), Runs(), heartbeat=well, now=clock)
    monkeypatch.setattr(Store, "put_new", failing(OSError("no answer")))

    ours.until(stop)

    assert wells == [1]


def test_reading_the_plan_changes_nothing(store: Store, clock: Clock) -> None:
    (pack, _) = Scheduler(store, (PACK, SWEEP), Runs(), now=clock).plan()

    assert (pack.scheduled, pack.next_at) == (PACK, NOON + timedelta(hours=1))
    assert store.paths("_gamelake") == []


def test_a_record_that_can_not_be_read_is_taken_for_new(store: Store, clock: Clock) -> None:
    store.put("_gamelake/maintenance/tasks/pack.json", b"{")

    assert TaskRecords(store).of("pack", NOON).known_since == NOON


class Program:
    """A program in the place of a job."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, text: str) -> None:
        (folder / "jobs").mkdir()
        (folder / "jobs/__init__.py").touch()
        (folder / "jobs/compact.py").write_text(text)
        monkeypatch.setenv("PYTHONPATH", str(folder))
        monkeypatch.chdir(folder)
        monkeypatch.setattr(program_runs, "_POLL_SECONDS", 0.02)

    def run(self, stop: Event, *, at_most_hours: float = 1, grace: timedelta = timedelta(0)) -> ProgramRun:
        scheduled = ScheduledTask(name="pack", when="every 1 hours", job="compact", at_most_hours=at_most_hours)
        return ProgramRunner(grace).run(scheduled, stop)


def test_a_program_that_ends_well_says_what_it_did(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run = Program(monkeypatch, tmp_path, 'print(\'[{"table": "a", "files_before": 3, "bytes_before": 40}]\')').run(
        Event()
    )

    assert (run.outcome, run.done) == (RunOutcome.OK, WorkDone(compacted_files=3, compacted_bytes=40))


def test_a_program_that_fails_has_failed_with_its_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert Program(monkeypatch, tmp_path, "raise SystemExit(4)").run(Event()).problem == "ended with 4"


def test_a_program_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run = Program(monkeypatch, tmp_path, "import time; time.sleep(60)").run(Event(), at_most_hours=0.1 / 3600)

    assert run.problem == "took longer than 0:00:00.100000"


def test_a_program_may_end_within_the_grace_and_is_ended_after_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = Program(monkeypatch, tmp_path, "import time; time.sleep(0.3)")
    stop = Event()
    stop.set()

    assert program.run(stop, grace=timedelta(seconds=30)).problem == ""
    assert program.run(stop, grace=timedelta(seconds=0.05)).problem == "was ended because the scheduler stops"


def test_what_jobs_print_is_summed_up_and_what_is_left_is_not() -> None:
    compacted = b'[{"table": "a", "files_before": 3, "bytes_before": 4}, {"table": "b", "skipped_files": 9}]'
    vacuumed = b'[{"table": "a", "replaced_files": 2, "orphaned_files": 1, "bytes": 50}]'

    assert work_done(compacted) == WorkDone(compacted_files=3, compacted_bytes=4)
    assert work_done(vacuumed) == WorkDone(deleted_files=3, deleted_bytes=50)
    assert work_done(b'{"rows": "balance"}') == work_done(b"all is good") == work_done(b"") == WorkDone()
