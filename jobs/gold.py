"""Keeps the gold tables up to date: one Spark job per run, whose rows are tables.

Which aggregates there are stands in the games contract. Settings come from GAMELAKE_* variables (docs/settings.md).
SIGTERM ends it after the current run.
"""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Event

import msgspec
from pyspark.sql import SparkSession

from gamelake.model.games import load_games
from gamelake.model.options import TelemetryOptions
from gamelake.observability.lineage.emitter import lineage_emitter
from gamelake.observability.lineage.flow import RunKind
from gamelake.observability.lineage.gold import GoldLineage
from gamelake.observability.metrics import gold as telemetry
from gamelake.observability.metrics.endpoint import Heartbeat, registry_of_process, served
from gamelake.program import FAILED, OK, run, stop_event
from gamelake.serving.gold.refresh import GoldRefresh
from gamelake.serving.gold.runner import FailedRefresh, GoldObservers, GoldRunner, GoldTables, Result, attempt
from gamelake.serving.gold.settings import GoldSettings
from gamelake.session import Sessions, own_session
from gamelake.storage.store import Store

_TASKS_PER_CORE = 8


class RefreshReporter:
    """Reports the outcomes of runs as metrics."""

    def __init__(self, to: telemetry.GoldTelemetry) -> None:
        self._to = to
        self.run_finished, self.mark_alive = to.run_finished, to.mark_alive

    def table_refreshed(self, refresh: GoldRefresh, result: Result) -> None:
        """A run has refreshed a table, or failed to."""
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--once", action="store_true", help="refresh every table once, print the results as JSON, end")
    once = parser.parse_args().once
    settings = GoldSettings.from_env()
    sessions = partial(own_session, "gold", settings.lakehouse.location, settings.spark_jars)
    if not once:
        run_continuously(settings, sessions, stop_event())
        return OK
    with keeping(settings, sessions, RunKind.BATCH) as keeper:
        results = keeper.once()
    print(msgspec.json.encode(results).decode())
    return FAILED if any(isinstance(each, FailedRefresh) for each in results) else OK


def run_continuously(settings: GoldSettings, sessions: Sessions, stop: Event) -> None:
    """Refresh what is due until it is stopped.

    Raises:
        ContractError: an aggregate of the contract is none, or can't be kept up as it says.
    """
    with keeping(settings, sessions, RunKind.STREAMING) as keeper:
        keeper.until(stop)


@contextmanager
def keeping(settings: GoldSettings, sessions: Sessions, kind: RunKind) -> Iterator[GoldRunner]:
    """Open what refreshes the gold tables, until the end of the block."""
    location = settings.lakehouse.location
    # Refuses an aggregate that is none before anything starts.
    tables = GoldTables(Store(location), load_games(settings.games_file))
    with (
        observing(settings.telemetry) as observer,
        lineage_emitter(settings.lineage, "gold", location) as job_lineage,
        sessions() as spark,
    ):
        yield GoldRunner(tables, partial(in_tasks, spark), GoldObservers(observer, GoldLineage(job_lineage, kind)))


@contextmanager
def observing(options: TelemetryOptions) -> Iterator[RefreshReporter]:
    """Serve the metrics of the gold tables until the end of the block."""
    registry = registry_of_process()
    with served(registry, options):
        yield RefreshReporter(telemetry.GoldTelemetry(registry, Heartbeat(options.heartbeat_file)))


def in_tasks(spark: SparkSession, due: Sequence[GoldRefresh]) -> Iterator[Result]:
    """Refresh tables, each in a task of its own; a few for each core at a time, so that a run shows progress."""
    context = spark.sparkContext
    at_once = _TASKS_PER_CORE * context.defaultParallelism
    for first in range(0, len(due), at_once):
        part = due[first : first + at_once]
        yield from context.parallelize(part, len(part)).map(attempt).collect()


if __name__ == "__main__":
    run(main)
