"""Runs the rounds of upkeep that are due, one at a time, whoever else has the same schedule on the same lakehouse."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from threading import Event
from typing import Protocol

import msgspec
from obstore.exceptions import BaseError

from gamelake.maintenance.program_runs import ProgramRun, RunOutcome
from gamelake.maintenance.run_records import TaskRecord, TaskRecords
from gamelake.model.errors import LeaseHeldError, TransientError
from gamelake.model.schedule import ScheduledTask
from gamelake.storage.leases import Lease, LeaseTiming
from gamelake.storage.store import Store

FIRST_RETRY = timedelta(minutes=15)
_LONGEST_RETRY = timedelta(hours=6)
_DOUBLINGS = 5


def due_at(scheduled: ScheduledTask, record: TaskRecord, seed: str) -> datetime:
    """The moment from which on it should run: its next turn, or sooner if the last run failed.

    Turns that were missed are one: the moment is in the past, and a run brings it into the future.
    """
    regular = next_turn(scheduled, record.begun_at or record.known_since, seed)
    if not record.failures:
        return regular
    pause = min(FIRST_RETRY * (1 << min(record.failures - 1, _DOUBLINGS)), _LONGEST_RETRY)
    return min(regular, record.last_moment + pause)


def next_turn(scheduled: ScheduledTask, moment: datetime, seed: str) -> datetime:
    """The first turn that is later than a moment, jitter and all."""
    # A turn's jitter may have carried it past the moment.
    turn = scheduled.cadence.after(moment - scheduled.jitter)
    while turn + jitter_of(scheduled, turn, seed) <= moment:
        turn += scheduled.cadence.period
    return turn + jitter_of(scheduled, turn, seed)


def jitter_of(scheduled: ScheduledTask, turn: datetime, seed: str) -> timedelta:
    """How much later a turn begins: the same whoever asks and however often."""
    drawn = sha256(f"{seed}/{scheduled.name}/{turn.isoformat()}".encode()).digest()
    return scheduled.jitter * (int.from_bytes(drawn[:4]) / 2**32)


log = logging.getLogger(__name__)

_LOOK_SECONDS = 5.0
_LEASE = "_gamelake/upkeep/lease"
# A person who asks for a round waits for the one that runs.
PATIENT = LeaseTiming(wait=600)
AT_ONCE = LeaseTiming()


class TaskRunner(Protocol):
    """What runs a round's program."""

    def run(self, scheduled: ScheduledTask, stop: Event) -> ProgramRun:
        """Run it to its end; never raises for what the program does."""


class RunReport(msgspec.Struct, frozen=True, kw_only=True):
    """A run as the log has it, one line of JSON."""

    round: str
    outcome: RunOutcome
    problem: str
    seconds: float
    packed_files: int
    packed_bytes: int
    freed_files: int
    freed_bytes: int
    next_at: datetime


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """A round, what is known of its runs, and when it runs next."""

    scheduled: ScheduledTask
    record: TaskRecord
    next_at: datetime


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Scheduler:
    """The rounds of one lakehouse.

    Attributes:
        heartbeat: called again and again as long as it moves.
        between: called again and again while no round runs.
        now: the clock.
    """

    store: Store
    rounds: Sequence[ScheduledTask]
    runner: TaskRunner
    heartbeat: Callable[[], None] = lambda: None
    between: Callable[[Event], None] = lambda _: None
    now: Callable[[], datetime] = _now

    def until(self, stop: Event) -> None:
        """Run what is due until it is told to stop; a run that goes on then may end first."""
        is_begun = False
        while not stop.is_set():
            try:
                if not is_begun:
                    self.begin()
                    is_begun = True
                self.turn(stop)
                self.between(stop)
            except (TransientError, BaseError, OSError) as error:
                log.warning("no round can be run now: %s", error)
            self.heartbeat()
            stop.wait(_LOOK_SECONDS)

    def begin(self) -> None:
        """Count the turns of rounds that the schedule has newly from now on."""
        TaskRecords(self.store).begin((each.name for each in self.rounds), self.now())

    def turn(self, stop: Event) -> list[RunReport]:
        """Run what is due now, in the schedule's order."""
        due = [each.scheduled for each in self.plan() if each.next_at <= self.now()]
        return [told for each in due if not stop.is_set() and (told := self._if_due(each, stop)) is not None]

    def plan(self) -> list[PlannedTask]:
        """All rounds, and when each runs next."""
        return [self._planned(each) for each in self.rounds]

    def once(self, scheduled: ScheduledTask, stop: Event) -> RunReport:
        """Run a round now, due or not.

        Raises:
            LeaseHeldError: another process runs a round, and does not end.
        """
        with self._alone(PATIENT):
            return self._run(scheduled, stop)

    def _if_due(self, scheduled: ScheduledTask, stop: Event) -> RunReport | None:
        try:
            with self._alone(AT_ONCE):
                # Another process may have run it while we looked.
                return self._run(scheduled, stop) if self._planned(scheduled).next_at <= self.now() else None
        except LeaseHeldError as error:
            log.info("%s waits: %s", scheduled.name, error)
            return None

    def _run(self, scheduled: ScheduledTask, stop: Event) -> RunReport:
        records = TaskRecords(self.store)
        record = records.of(scheduled.name, self.now()).begun(self.now())
        records.keep(scheduled.name, record)
        log.info("%s begins: %s", scheduled.name, scheduled.command)
        run = self.runner.run(scheduled, stop)
        ended = record.succeeded if run.outcome is RunOutcome.OK else record.failed
        record = ended(self.now(), run.done)
        records.keep(scheduled.name, record)
        told = _told(scheduled, run, due_at(scheduled, record, self.store.location.uri))
        log.log(logging.ERROR if run.problem else logging.INFO, "round %s", msgspec.json.encode(told).decode())
        return told

    def _planned(self, scheduled: ScheduledTask) -> PlannedTask:
        record = TaskRecords(self.store).of(scheduled.name, self.now())
        return PlannedTask(scheduled, record, due_at(scheduled, record, self.store.location.uri))

    def _alone(self, pace: LeaseTiming) -> Lease:
        return Lease(self.store, _LEASE, "upkeep of the lakehouse", pace)


def _told(scheduled: ScheduledTask, run: ProgramRun, next_at: datetime) -> RunReport:
    done: Mapping[str, int] = msgspec.to_builtins(run.done)
    return RunReport(
        round=scheduled.name,
        outcome=run.outcome,
        problem=run.problem,
        seconds=round(run.seconds, 3),
        next_at=next_at,
        **done,
    )
