"""Runs maintenance tasks when they are due, one at a time across all schedulers of a lakehouse."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from threading import Event
from typing import Protocol

import msgspec
from obstore.exceptions import BaseError

from gamelake.contract.schedule import ScheduledTask
from gamelake.maintenance.program_runs import ProgramRun, RunOutcome
from gamelake.maintenance.run_records import TaskRecord, TaskRecords
from gamelake.model.errors import LeaseHeldError, TransientError
from gamelake.model.logs import event_logger
from gamelake.model.naming import MAINTENANCE_FOLDER
from gamelake.objects.leases import Lease, LeaseTiming
from gamelake.objects.store import Store

log = event_logger(__name__)

_POLL_SECONDS = 5.0
_LEASE = f"{MAINTENANCE_FOLDER}/lease"
# An operator's run waits until the running one ends.
PATIENT = LeaseTiming(wait=600)
AT_ONCE = LeaseTiming()
FIRST_RETRY = timedelta(minutes=15)
_LONGEST_RETRY = timedelta(hours=6)
_DOUBLINGS = 5
# A run may be recorded this far in the future, or one period of the task if that is longer: the clock was set to an
# earlier time since, or another scheduler's clock is ahead.
_FURTHEST_AHEAD = timedelta(days=1)


def due_at(scheduled: ScheduledTask, record: TaskRecord, seed: str, now: datetime) -> datetime:
    """Return when a task is due: at its next scheduled time, or sooner if its last run failed.

    One run makes up for all missed runs: the task is due while the time is in the past, and a run moves it into the
    future. If a wrong clock recorded the last run far in the future, the task is due now.
    """
    since = record.begun_at or record.known_since
    if since > now + max(scheduled.cadence.period, _FURTHEST_AHEAD):
        return now
    regular = next_turn(scheduled, since, seed)
    if not record.failures:
        return regular
    pause = min(FIRST_RETRY * (1 << min(record.failures - 1, _DOUBLINGS)), _LONGEST_RETRY)
    return min(regular, record.last_moment + pause)


def next_turn(scheduled: ScheduledTask, moment: datetime, seed: str) -> datetime:
    """Return the first scheduled time after a moment, including jitter."""
    # Jitter may have moved an earlier time past the moment.
    turn = scheduled.cadence.after(moment - scheduled.jitter)
    while turn + jitter_of(scheduled, turn, seed) <= moment:
        turn += scheduled.cadence.period
    return turn + jitter_of(scheduled, turn, seed)


def jitter_of(scheduled: ScheduledTask, turn: datetime, seed: str) -> timedelta:
    """Return the delay of a scheduled run; it depends only on the seed, the task and the time, not on the process."""
    drawn = sha256(f"{seed}/{scheduled.name}/{turn.isoformat()}".encode()).digest()
    return scheduled.jitter * (int.from_bytes(drawn[:4]) / 2**32)


class TaskRunner(Protocol):
    """Runs a task's program.

    The scheduler calls it from one thread, while it holds the lease of the lakehouse's maintenance. If the program
    fails, the runner returns a run with a problem. It raises an error only if it can't start the program; the run then
    stays open in the task's record, and counts as failed.
    """

    def run(self, scheduled: ScheduledTask, stop: Event) -> ProgramRun:
        """Run the task's program to its end; end it early if `stop` is set."""


class RunReport(msgspec.Struct, frozen=True, kw_only=True):
    """The report of a run: the fields of its log line.

    Attributes:
        task: name of the task.
        outcome: the outcome of the run.
        problem: the reason why the run failed; empty if it succeeded.
        seconds: duration.
        compacted_files: number of files that compaction replaced.
        compacted_bytes: size of these files.
        deleted_files: number of files that vacuum and log cleanup deleted.
        deleted_bytes: size of these files.
        next_at: when the task is due next.
    """

    task: str
    outcome: RunOutcome
    problem: str
    seconds: float
    compacted_files: int
    compacted_bytes: int
    deleted_files: int
    deleted_bytes: int
    next_at: datetime


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """A task of the schedule.

    Attributes:
        scheduled: the task.
        record: the record of its runs.
        next_at: when it is due next.
    """

    scheduled: ScheduledTask
    record: TaskRecord
    next_at: datetime


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Scheduler:
    """Schedules the tasks of one lakehouse.

    Attributes:
        store: the store of the lakehouse.
        tasks: the tasks, in the order in which due ones run.
        runner: runs the tasks' programs.
        heartbeat: called every few seconds while the loop runs.
        between: called every few seconds while no task runs.
        runs: True to run due tasks; False if another scheduler, such as a cluster's, runs them.
        now: the clock.
    """

    store: Store
    tasks: Sequence[ScheduledTask]
    runner: TaskRunner
    heartbeat: Callable[[], None] = lambda: None
    between: Callable[[Event], None] = lambda _: None
    runs: bool = True
    now: Callable[[], datetime] = _now

    def until(self, stop: Event) -> None:
        """Run due tasks until `stop` is set; a task that is running then may end first."""
        is_begun = False
        while not stop.is_set():
            try:
                if not is_begun:
                    self.begin()
                    is_begun = True
                if self.runs:
                    self.run_due(stop)
                self.between(stop)
            except (TransientError, BaseError, OSError) as error:
                log.warning("no_task_can_run", error=error, action="tries again")
            self.heartbeat()
            stop.wait(_POLL_SECONDS)

    def begin(self) -> None:
        """Write records for tasks that are new in the schedule: they are due from now on."""
        TaskRecords(self.store).begin((each.name for each in self.tasks), self.now())

    def run_due(self, stop: Event) -> list[RunReport]:
        """Run the tasks that are due now, in the order of the schedule, and return their reports."""
        due = [each.scheduled for each in self.plan() if each.next_at <= self.now()]
        return [report for each in due if not stop.is_set() and (report := self._if_due(each, stop)) is not None]

    def plan(self) -> list[PlannedTask]:
        """Return all tasks with their records and due times."""
        return [self._planned(each) for each in self.tasks]

    def once(self, scheduled: ScheduledTask, stop: Event) -> RunReport:
        """Run a task now, due or not.

        Raises:
            LeaseHeldError: another process has run a task for longer than this one waits (`PATIENT`).
        """
        with self._lease(PATIENT):
            return self._run(scheduled, stop)

    def _if_due(self, scheduled: ScheduledTask, stop: Event) -> RunReport | None:
        try:
            with self._lease(AT_ONCE):
                # Another process may have run it since the plan was read.
                return self._run(scheduled, stop) if self._planned(scheduled).next_at <= self.now() else None
        except LeaseHeldError as error:
            log.info("task_waits", task=scheduled.name, error=error)
            return None

    def _run(self, scheduled: ScheduledTask, stop: Event) -> RunReport:
        records = TaskRecords(self.store)
        record = records.of(scheduled.name, self.now()).begun(self.now())
        records.keep(scheduled.name, record)
        log.info("task_started", task=scheduled.name, command=scheduled.command)
        run = self.runner.run(scheduled, stop)
        ended = record.succeeded if run.outcome is RunOutcome.OK else record.failed
        record = ended(now := self.now(), run.done)
        records.keep(scheduled.name, record)
        report = _report(scheduled, run, due_at(scheduled, record, self.store.location.uri, now))
        if run.problem:
            log.error("task_failed", **msgspec.to_builtins(report))
        else:
            log.info("task_finished", **msgspec.to_builtins(report))
        return report

    def _planned(self, scheduled: ScheduledTask) -> PlannedTask:
        now = self.now()
        record = TaskRecords(self.store).of(scheduled.name, now)
        return PlannedTask(scheduled, record, due_at(scheduled, record, self.store.location.uri, now))

    def _lease(self, pace: LeaseTiming) -> Lease:
        return Lease(self.store, _LEASE, "maintenance of the lakehouse", pace)


def _report(scheduled: ScheduledTask, run: ProgramRun, next_at: datetime) -> RunReport:
    return RunReport(
        task=scheduled.name,
        outcome=run.outcome,
        problem=run.problem,
        seconds=round(run.seconds, 3),
        next_at=next_at,
        **msgspec.structs.asdict(run.done),
    )
