"""Runs the maintenance tasks of a schedule when they are due: compaction, vacuum, log cleanup and others.

The schedule is contracts/schedule.yaml. One task runs at a time over all processes of a lakehouse, as a program of its
own; a missed run is made up for once, a failed one is tried again. The lakehouse keeps the record of each task. No
Spark. Settings come from GAMELAKE_* variables (docs/settings.md). After SIGTERM a running task may continue for
GAMELAKE_MAINTENANCE_GRACE_SECONDS.
"""

import argparse
import math
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from importlib.util import find_spec
from threading import Event

import msgspec

from gamelake.command import command_parser, print_result
from gamelake.contract.games import load_games
from gamelake.contract.schedule import ScheduledTask, load_schedule
from gamelake.maintenance.program_runs import ProgramRunner, RunOutcome
from gamelake.maintenance.retentions import RetentionKind, applicable, fits, promised
from gamelake.maintenance.scheduler import PlannedTask, Scheduler
from gamelake.maintenance.settings import MaintenanceSettings
from gamelake.model.choices import allowed
from gamelake.model.errors import ContractError, SettingsError
from gamelake.model.logs import event_logger
from gamelake.objects.store import Store, require_put_if_absent
from gamelake.observability.metrics.endpoint import Heartbeat, registry_of_process, served
from gamelake.observability.metrics.maintenance import (
    MaintenanceTelemetry,
    MaintenanceTotal,
    TableFigures,
    TaskFigures,
)
from gamelake.observability.metrics.repeating import Repeating
from gamelake.observability.retention_health import topic_retention
from gamelake.program import FAILED, OK, run, stop_event

log = event_logger("maintenance")

_TASKS_EVERY, _RETENTIONS_EVERY = timedelta(seconds=15), timedelta(minutes=5)
_MEASUREMENT = ScheduledTask(
    name="measure_tables",
    when="every 1 hours",
    job="compact",
    arguments=("--no-spark", "--dry-run"),
    at_most_hours=0.25,
)


class PlannedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A task as `--plan` prints it."""

    task: str
    when: str
    next_at: datetime
    last_success: datetime | None
    failures: int
    command: str


def main() -> int:
    """Run tasks until stopped, only publish their metrics, run one task, or print the plan."""
    arguments = _arguments()
    settings = MaintenanceSettings.from_env()
    tasks = load_schedule(settings.schedule_file).tasks
    _require_jobs(tasks)
    scheduler = Scheduler(Store(settings.lakehouse.location), tasks, ProgramRunner(settings.grace))
    if arguments.plan:
        return print_result([_as_planned(each) for each in scheduler.plan()])
    if arguments.once is None:
        run_scheduler(settings, tasks, runs=not arguments.observe)
        return OK
    report = scheduler.once(_task(tasks, arguments.once), stop_event())
    print_result([report])
    return OK if report.outcome is RunOutcome.OK else FAILED


def run_scheduler(settings: MaintenanceSettings, tasks: Sequence[ScheduledTask], *, runs: bool = True) -> None:
    """Run due tasks, unless `runs` is false, and serve the metrics until stopped."""
    stop, registry = stop_event(), registry_of_process()
    store = Store(settings.lakehouse.location)
    require_put_if_absent(store)
    telemetry = MaintenanceTelemetry(registry, Heartbeat(settings.telemetry.heartbeat_file))
    programs = ProgramRunner(settings.grace, telemetry.mark_alive)
    measurements = TableMeasurements(programs, telemetry, settings.measure_interval)
    scheduler = Scheduler(store, tasks, programs, telemetry.mark_alive, measurements.if_due, runs)
    with (
        served(registry, settings.telemetry),
        Repeating("the metrics of tasks", partial(_publish_tasks, scheduler, telemetry), _TASKS_EVERY),
        Repeating("the metrics of retentions", partial(_publish_retentions, settings, telemetry), _RETENTIONS_EVERY),
    ):
        scheduler.until(stop)


class TableMeasurements:
    """Measures what is pending in the tables, by a dry run of compaction.

    It runs as a program between tasks, as it reads all logs, which takes more memory than the rest of this process.
    """

    def __init__(self, programs: ProgramRunner, telemetry: MaintenanceTelemetry, interval: timedelta) -> None:
        self._programs = programs
        self._telemetry = telemetry
        self._interval = interval
        self._measured_at = -math.inf

    def if_due(self, stop: Event) -> None:
        """Measure, unless the interval has not passed or is 0."""
        if not self._interval or time.monotonic() - self._measured_at < self._interval.total_seconds():
            return
        self._measured_at = time.monotonic()
        measured = self._programs.run(_MEASUREMENT, stop)
        try:
            found = msgspec.json.decode(measured.printed, type=list[_Pending])
        except msgspec.DecodeError:
            log.warning("tables_not_measured", error=f"the dry run {measured.problem or 'printed no JSON'}")
            return
        tables = sorted({each.table for each in found})
        self._telemetry.tables([_of_table(each, found) for each in tables])
        self._telemetry.polled()


class _Pending(msgspec.Struct, frozen=True):
    """The content that the dry run prints of a table, in one or two objects."""

    table: str
    files: int = 0
    bytes: int = 0
    skipped_files: int = 0


def _of_table(table: str, found: Sequence[_Pending]) -> TableFigures:
    parts = [each for each in found if each.table == table]
    return TableFigures(
        table,
        sum(each.files for each in parts),
        sum(each.bytes for each in parts),
        sum(each.skipped_files for each in parts),
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
            MaintenanceTotal.COMPACTED_FILES: done.compacted_files,
            MaintenanceTotal.COMPACTED_BYTES: done.compacted_bytes,
            MaintenanceTotal.DELETED_FILES: done.deleted_files,
            MaintenanceTotal.DELETED_BYTES: done.deleted_bytes,
        },
    )


def _as_planned(planned: PlannedTask) -> PlannedRun:
    return PlannedRun(
        task=planned.scheduled.name,
        when=planned.scheduled.when,
        next_at=planned.next_at,
        last_success=planned.record.succeeded_at,
        failures=planned.record.failures_so_far,
        command=planned.scheduled.command,
    )


def _require_jobs(tasks: Sequence[ScheduledTask]) -> None:
    for each in tasks:
        if each.job == "maintenance" or find_spec(f"jobs.{each.job}") is None:
            raise ContractError(f"the scheduled task '{each.name}' has an unknown job: there is no jobs/{each.job}.py")


def _task(tasks: Sequence[ScheduledTask], name: str) -> ScheduledTask:
    for each in tasks:
        if each.name == name:
            return each
    raise SettingsError(
        f"the schedule has no task '{name}'; its tasks are: {allowed([each.name for each in tasks], name)}"
    )


def _arguments() -> argparse.Namespace:
    parser = command_parser(__doc__)
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--once", metavar="TASK", help="run this task now, whether it is due or not, and exit")
    instead.add_argument("--plan", "--dry-run", action="store_true", help="print when each task runs next, and exit")
    instead.add_argument(
        "--observe",
        action="store_true",
        help="run no task, only measure the tables and serve the metrics: CronJobs of a cluster run the tasks",
    )
    return parser.parse_args()


if __name__ == "__main__":
    run(main)
