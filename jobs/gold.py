"""Keeps the gold tables up to date, one Spark job per run, whose rows are tables; then KPIs and experiments from them.

Which aggregates there are stands in the games contract. Settings come from GAMELAKE_* variables (docs/settings.md).
SIGTERM ends it after the current run.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from threading import Event

from pyspark.sql import SparkSession

from gamelake.command import command_parser, print_result
from gamelake.contract.games import GamesContract
from gamelake.model.failpoints import Failpoints
from gamelake.model.logs import event_logger
from gamelake.model.options import TelemetryOptions
from gamelake.objects.store import Store
from gamelake.observability.experiments import ExperimentReporter
from gamelake.observability.game_figures import GameFiguresReporter
from gamelake.observability.kpis import KpiReporter
from gamelake.observability.lineage.emitter import Emitter, lineage_emitter
from gamelake.observability.lineage.flow import RunKind
from gamelake.observability.lineage.gold import GoldLineage
from gamelake.observability.lineage.job_flows import kpi_flows
from gamelake.observability.metrics.endpoint import Heartbeat, registry_of_process, served
from gamelake.observability.metrics.serving import gold as telemetry
from gamelake.observability.metrics.serving.experiments import ExperimentTelemetry
from gamelake.observability.metrics.serving.kpis import KpiTelemetry
from gamelake.observability.metrics.serving.segments import SegmentTelemetry
from gamelake.program import FAILED, OK, run, stop_event
from gamelake.serving.experiments.keeper import ExperimentKeeper
from gamelake.serving.gold.contract import load_gold
from gamelake.serving.gold.refresh import GoldRefresh
from gamelake.serving.gold.runner import FailedRefresh, GoldRunner, GoldTables, Result, attempt
from gamelake.serving.gold.settings import GoldSettings
from gamelake.serving.kpis.refresh import KpiRefresh
from gamelake.serving.kpis.tables import DAILY
from gamelake.serving.money.rates import RATES_FILE
from gamelake.serving.money.tables import prepare_money
from gamelake.serving.players.keeper import SegmentKeeper, SegmentsObserver
from gamelake.serving.players.moves import NoPublisher
from gamelake.serving.players.publishing import SegmentPublisher
from gamelake.serving.players.refresh import SegmentRefresh
from gamelake.session import Sessions, own_session

log = event_logger("gold")

_TASKS_PER_CORE = 8


class RefreshReporter:
    """Reports the outcomes of runs as metrics."""

    def __init__(self, to: telemetry.GoldTelemetry) -> None:
        self._to = to
        self.run_finished, self.mark_alive = to.run_finished, to.mark_alive

    def table_refreshed(self, refresh: GoldRefresh, result: Result) -> None:
        """Show a table that a run has refreshed, or failed to refresh."""
        self._to.table_refreshed(
            telemetry.RefreshFigures(
                table=refresh.table,
                outcome=telemetry.FAILED if isinstance(result, FailedRefresh) else result.outcome.value,
                rows=0 if isinstance(result, FailedRefresh) else result.rows_written,
                every=refresh.definition.spec.interval,
            )
        )


def main() -> int:
    """Refresh what is due until it is stopped, or everything once with --once."""
    parser = command_parser(__doc__)
    parser.add_argument("--once", action="store_true", help="refresh every table once, print the results as JSON, end")
    once = parser.parse_args().once
    settings = GoldSettings.from_env()
    sessions = partial(own_session, "gold", settings.lakehouse.location, settings.spark_jars)
    if not once:
        run_continuously(settings, sessions, stop_event())
        return OK
    with keeping(settings, sessions, RunKind.BATCH) as keeper:
        results = keeper.once()
    print_result(results)
    return FAILED if any(isinstance(each, FailedRefresh) for each in results) else OK


def run_continuously(settings: GoldSettings, sessions: Sessions, stop: Event) -> None:
    """Refresh what is due until it is stopped.

    Raises:
        ContractError: an aggregate of the contract is invalid, or can't be kept up as it says.
    """
    with keeping(settings, sessions, RunKind.STREAMING) as keeper:
        keeper.until(stop)


@contextmanager
def keeping(settings: GoldSettings, sessions: Sessions, kind: RunKind) -> Iterator[GoldRunner]:
    """Open what refreshes the gold tables, until the end of the block."""
    location = settings.lakehouse.location
    # Refuses an invalid aggregate before anything starts.
    contract = load_gold(settings.games_file)
    tables, games = GoldTables(Store(location), contract), contract.games
    prepare_money(Store(location), settings.games_file.with_name(RATES_FILE))
    with (
        observing(settings.telemetry) as shown,
        lineage_emitter(settings.lineage, "gold", location) as job_lineage,
        sessions() as spark,
    ):
        kpis = KpiRefresh(
            Store(location),
            contract.zones,
            progress=shown.gold.mark_alive,
            failpoints=Failpoints(settings.kill),
        )
        keeper = KpiKeeper(kpis, KpiReporter(shown.kpis, kpis), job_lineage, kind)
        figures = GameFiguresReporter(Store(location), {each.name: each.game_name for each in games}, shown.kpis)
        observers = (RefreshReporter(shown.gold), GoldLineage(job_lineage, kind), figures)
        zones = {each.name: each.time_zone for each in games}
        reporter = ExperimentReporter(Store(location), shown.experiments, zones)
        experiments = ExperimentKeeper(Store(location), settings.games_file, shown.gold.mark_alive, reporter)
        segments = segment_keeper(settings, contract, kpis, shown.gold.mark_alive, shown.segments)
        yield GoldRunner(tables, partial(in_tasks, spark), observers, lambda: [*keeper(), *segments(), *experiments()])


def segment_keeper(
    settings: GoldSettings,
    contract: GamesContract,
    kpis: KpiRefresh,
    progress: Callable[[], None],
    observer: SegmentsObserver,
) -> SegmentKeeper:
    """Return the keeper of segments, which publishes changes if the settings name a topic."""
    store, topic = Store(settings.lakehouse.location), settings.segments
    publisher = NoPublisher() if topic is None else SegmentPublisher(topic, store, contract)
    failpoints = Failpoints(settings.kill)
    refresh = SegmentRefresh(store, contract, kpis, publisher, failpoints, progress)
    return SegmentKeeper(refresh, settings.games_file, observer)


@dataclass(frozen=True, slots=True)
class KpiKeeper:
    """Keeps the KPIs up to date with gold's tables; a failure delays no gold table."""

    refresh: KpiRefresh
    reporter: KpiReporter
    lineage: Emitter
    kind: RunKind

    def __call__(self) -> Sequence[FailedRefresh]:
        """Refresh once; returns what has failed."""
        try:
            done = self.refresh()
        except Exception as error:
            log.exception("kpis_failed", error=f"{type(error).__name__}: {error}", action="the next run tries again")
            self.reporter.failed()
            return [FailedRefresh(table=DAILY.path, reason=str(error))]
        if done.days:
            log.info("kpis_refreshed", days=done.days, rebuilt=done.rebuilt, seconds=round(done.seconds, 1))
        if done.positions:
            self.lineage.emit(*kpi_flows(self.kind))
        self.reporter.refreshed(done)
        return [FailedRefresh(table=DAILY.path, reason=f"the figures of '{game}' failed") for game in done.failed]


@dataclass(frozen=True, slots=True)
class GoldJobTelemetry:
    """The metrics of the gold tables, the KPIs, the segments and the experiments."""

    gold: telemetry.GoldTelemetry
    kpis: KpiTelemetry
    segments: SegmentTelemetry
    experiments: ExperimentTelemetry


@contextmanager
def observing(options: TelemetryOptions) -> Iterator[GoldJobTelemetry]:
    """Serve the metrics of the gold tables, the KPIs, the segments and the experiments until the end of the block."""
    registry = registry_of_process()
    with served(registry, options):
        gold = telemetry.GoldTelemetry(registry, Heartbeat(options.heartbeat_file))
        yield GoldJobTelemetry(gold, KpiTelemetry(registry), SegmentTelemetry(registry), ExperimentTelemetry(registry))


def in_tasks(spark: SparkSession, due: Sequence[GoldRefresh]) -> Iterator[Result]:
    """Refresh tables, each in a task of its own; a few for each core at a time, so that a run shows progress."""
    context = spark.sparkContext
    at_once = _TASKS_PER_CORE * context.defaultParallelism
    for first in range(0, len(due), at_once):
        part = due[first : first + at_once]
        yield from context.parallelize(part, len(part)).map(attempt).collect()


if __name__ == "__main__":
    run(main)
