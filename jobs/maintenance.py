"""Runs the rounds of upkeep when they are due: compaction, vacuum, and whatever else the schedule names.

Which round runs when stands in contracts/schedule.yaml. One round runs at a time, as a program of its own, over all
processes that have the same lakehouse; one that was missed is made up for once, one that failed is tried again. What
ran when is kept in the lakehouse. Settings come from GAMELAKE_* variables (docs/settings.md). No Spark. SIGTERM ends it
after the round that runs, or with that round after GAMELAKE_MAINTENANCE_GRACE_SECONDS.
"""

import argparse
import logging
import math
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from importlib.util import find_spec
from threading import Event

import msgspec

from gamelake.maintenance.program_runs import ProgramRunner, RunOutcome
from gamelake.maintenance.retentions import RetentionKind, applicable, fits, promised
from gamelake.maintenance.scheduler import PlannedTask, Scheduler
from gamelake.maintenance.settings import MaintenanceSettings
from gamelake.model.errors import ContractError, SettingsError
from gamelake.model.games import load_games
from gamelake.model.schedule import ScheduledTask, load_schedule
from gamelake.observability.metrics.best_effort import Repeating
from gamelake.observability.metrics.endpoint import Heartbeat, registry_of_process, served
from gamelake.observability.metrics.maintenance import (
    MaintenanceMetric,
    MaintenanceTelemetry,
    TableFigures,
    TaskFigures,
)
from gamelake.observability.retention_health import topic_retention
from gamelake.program import FAILED, OK, run, stop_event
from gamelake.storage.store import Store, require_put_if_absent

log = logging.getLogger("upkeep")

_TASKS_EVERY, _RETENTIONS_EVERY = timedelta(seconds=15), timedelta(minutes=5)
_MEASUREMENT = ScheduledTask(
    name="look", when="every 1 hours", job="compact", arguments=("--here", "--dry-run"), at_most_hours=0.25
)


class PlannedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A round as `--plan` shows it."""

    round: str
    when: str
    next_at: datetime
    last_success: datetime | None
    failures: int
    command: str


def main() -> int:
    """Run what is due until it is stopped, or one round, or say what runs when."""
    arguments = _arguments()
    settings = MaintenanceSettings.from_env()
    rounds = load_schedule(settings.schedule_file).tasks
    _require_jobs(rounds)
    scheduler = Scheduler(Store(settings.lakehouse.location), rounds, ProgramRunner(settings.grace))
    if arguments.plan:
        return _print([_as_planned(each) for each in scheduler.plan()])
    if arguments.once is None:
        run_scheduler(settings, rounds)
        return OK
    told = scheduler.once(_named(rounds, arguments.once), stop_event())
    _print([told])
    return OK if told.outcome is RunOutcome.OK else FAILED


def run_scheduler(settings: MaintenanceSettings, rounds: Sequence[ScheduledTask]) -> None:
    """Run what is due until it is stopped, and tell Prometheus of it."""
    stop, registry = stop_event(), registry_of_process()
    store = Store(settings.lakehouse.location)
    require_put_if_absent(store)
    telemetry = MaintenanceTelemetry(registry, Heartbeat(settings.telemetry.heartbeat_file))
    programs = ProgramRunner(settings.grace, telemetry.is_well)
    tables = TableMeasurements(programs, telemetry, settings.measure_interval)
    scheduler = Scheduler(store, rounds, programs, telemetry.is_well, tables.if_due)
    with (
        served(registry, settings.telemetry),
        Repeating("a look at the rounds", partial(_publish_tasks, scheduler, telemetry), _TASKS_EVERY),
        Repeating("a look at retentions", partial(_publish_retentions, settings, telemetry), _RETENTIONS_EVERY),
    ):
        scheduler.until(stop)


class TableMeasurements:
    """Looks at what waits in the tables, by the dry run of compaction.

    That is a program too, and between rounds: what reads tables takes more memory than all else here.
    """

    def __init__(self, programs: ProgramRunner, telemetry: MaintenanceTelemetry, interval: timedelta) -> None:
        self._programs = programs
        self._telemetry = telemetry
        self._interval = interval
        self._measured_at = -math.inf

    def if_due(self, stop: Event) -> None:
        """Look, unless that was done a moment ago, or is never to be done."""
        if not self._interval or time.monotonic() - self._measured_at < self._interval.total_seconds():
            return
        self._measured_at = time.monotonic()
        looked = self._programs.run(_MEASUREMENT, stop)
        try:
            found = msgspec.json.decode(looked.printed, type=list[_Pending])
        except msgspec.DecodeError:
            log.warning("a look at the tables failed: it %s", looked.problem or "said nothing")
            return
        tables = sorted({each.table for each in found})
        self._telemetry.tables([_of_table(each, found) for each in tables])
        self._telemetry.polled()


class _Pending(msgspec.Struct, frozen=True):
    """What the dry run says of a table, in one part or two."""

    table: str
    files: int = 0
    bytes: int = 0
    left_files: int = 0


def _of_table(table: str, found: Sequence[_Pending]) -> TableFigures:
    parts = [each for each in found if each.table == table]
    return TableFigures(
        table,
        sum(each.files for each in parts),
        sum(each.bytes for each in parts),
        sum(each.left_files for each in parts),
    )


def _publish_tasks(scheduler: Scheduler, telemetry: MaintenanceTelemetry) -> None:
    telemetry.tasks([_figures(each) for each in scheduler.plan()])


def _publish_retentions(settings: MaintenanceSettings, telemetry: MaintenanceTelemetry) -> None:
    spans = promised(load_games(settings.games_file).maintenance)
    _set_retentions(spans, telemetry)
    if settings.topic is not None:
        spans[RetentionKind.KAFKA] = topic_retention(settings.topic.kafka, settings.topic.name)
        _set_retentions(spans, telemetry)


def _set_retentions(spans: dict[RetentionKind, timedelta], telemetry: MaintenanceTelemetry) -> None:
    rules = {(rule.longer.value, rule.shorter.value): fits(rule, spans) for rule in applicable(spans)}
    telemetry.retentions({span.value: kept for span, kept in spans.items()}, rules)


def _figures(planned: PlannedTask) -> TaskFigures:
    record, done = planned.record, planned.record.done
    return TaskFigures(
        name=planned.scheduled.name,
        last_success=record.succeeded_at or record.known_since,
        next_at=planned.next_at,
        interval=planned.scheduled.cadence.period,
        seconds=record.seconds,
        failures=record.failures_so_far,
        runs={RunOutcome.OK: record.runs_ok, RunOutcome.FAILED: record.runs_failed},
        totals={
            MaintenanceMetric.COMPACTED_FILES: done.packed_files,
            MaintenanceMetric.COMPACTED_BYTES: done.packed_bytes,
            MaintenanceMetric.FREED_FILES: done.freed_files,
            MaintenanceMetric.FREED_BYTES: done.freed_bytes,
        },
    )


def _as_planned(planned: PlannedTask) -> PlannedRun:
    return PlannedRun(
        round=planned.scheduled.name,
        when=planned.scheduled.when,
        next_at=planned.next_at,
        last_success=planned.record.succeeded_at,
        failures=planned.record.failures_so_far,
        command=planned.scheduled.command,
    )


def _require_jobs(rounds: Sequence[ScheduledTask]) -> None:
    for each in rounds:
        if each.job == "maintenance" or find_spec(f"jobs.{each.job}") is None:
            raise ContractError(f"the round '{each.name}' of the schedule names no job: there is no jobs/{each.job}.py")


def _named(rounds: Sequence[ScheduledTask], name: str) -> ScheduledTask:
    for each in rounds:
        if each.name == name:
            return each
    raise SettingsError(f"the schedule has no round '{name}'; these are: {', '.join(each.name for each in rounds)}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--once", metavar="ROUND", help="run this round now, whether it is due or not, and end")
    instead.add_argument("--plan", "--dry-run", action="store_true", help="say when each round runs next, and end")
    return parser.parse_args()


def _print(results: Sequence[msgspec.Struct]) -> int:
    print(msgspec.json.format(msgspec.json.encode(results)).decode())
    return OK


if __name__ == "__main__":
    run(main)
