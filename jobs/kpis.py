"""Keeps the key figures of all games up: one streaming query over silver/events into the tables gold/kpi_*.

Where rows of silver were restored or replayed, it computes anew by itself. Settings come from GAMELAKE_* variables
(docs/settings.md). SIGTERM ends it after the batch that runs.
"""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from threading import Event

from pyspark.sql import SparkSession

from gamelake.model.logs import event_logger
from gamelake.model.options import TelemetryOptions
from gamelake.observability.kpis import KpiReporter
from gamelake.observability.lineage.emitter import lineage_emitter
from gamelake.observability.lineage.flow import RunKind
from gamelake.observability.lineage.job_flows import flows
from gamelake.observability.metrics.endpoint import Heartbeat, registry_of_process, served
from gamelake.observability.metrics.kpis import KpiTelemetry
from gamelake.observability.metrics.listener import ProgressListener
from gamelake.program import OK, run, stop_event
from gamelake.serving.kpis.batch import KpiBatches
from gamelake.serving.kpis.generations import KpiGeneration, SourceRevisedError
from gamelake.serving.kpis.query import (
    QUERY,
    KpiStart,
    batches,
    driver_lease,
    prepare,
    run_until,
    start,
    wait_for_source,
)
from gamelake.serving.kpis.settings import KpiSettings
from gamelake.serving.kpis.source import SourceLog
from gamelake.session import Sessions, own_session
from gamelake.storage.leases import Lease
from gamelake.storage.store import Store, require_put_if_absent
from gamelake.streaming.runner import TriggerMode

log = event_logger(QUERY)


def main() -> int:
    """Run the query until it is stopped, or until silver's present end with --available-now."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--available-now", action="store_true", help="count what silver holds now, then end")
    parser.add_argument("--rebuild", action="store_true", help="count all of silver again, from its beginning")
    arguments = parser.parse_args()
    asked = Asked(
        TriggerMode.AVAILABLE_NOW if arguments.available_now else TriggerMode.CONTINUOUS,
        KpiStart.ANEW if arguments.rebuild else KpiStart.WHERE_IT_STOPPED,
    )
    settings = KpiSettings.from_env()
    sessions = partial(own_session, QUERY, settings.lakehouse.location, settings.spark_jars)
    run_stream(settings, sessions, stop_event(), asked)
    return OK


@dataclass(frozen=True, slots=True)
class Asked:
    """When the query ends by itself, and where it begins."""

    mode: TriggerMode = TriggerMode.CONTINUOUS
    beginning: KpiStart = KpiStart.WHERE_IT_STOPPED

    @property
    def kind(self) -> RunKind:
        """What the lineage calls it."""
        return RunKind.BATCH if self.mode is TriggerMode.AVAILABLE_NOW else RunKind.STREAMING


def run_stream(settings: KpiSettings, sessions: Sessions, stop: Event, asked: Asked = Asked()) -> None:
    """Run the query until it is stopped, or has come to where it is asked to end.

    Raises:
        GamelakeError: what ended the query, or that it may not start.
    """
    store = Store(settings.lakehouse.location)
    require_put_if_absent(store)
    with (
        driver_lease(store) as driver,
        observing(settings.telemetry) as telemetry,
        lineage_emitter(settings.lineage, "kpis", settings.lakehouse.location) as lineage,
    ):
        source_id = wait_for_source(store, stop, telemetry.idled)
        if source_id is None:
            return
        query = _Query(settings, store, source_id, driver, telemetry)
        begun = query.begin(asked.beginning)
        lineage.emit(*flows(begun.generation.app_id, asked.kind))
        with sessions() as spark:
            if settings.telemetry.are_wanted:
                spark.streams.addListener(ProgressListener(telemetry))
            while not query.has_ended(spark, begun, stop, asked.mode):
                begun = query.begin(KpiStart.ANEW)
                lineage.emit(*flows(begun.generation.app_id, asked.kind))


@dataclass(frozen=True, slots=True)
class _Begun:
    """A query that may start: its checkpoint, its source, its batch function."""

    generation: KpiGeneration
    source: SourceLog
    body: KpiBatches


@dataclass(frozen=True, slots=True)
class _Query:
    """The query, as often as it begins."""

    settings: KpiSettings
    store: Store
    source_id: str
    driver: Lease
    telemetry: KpiTelemetry

    def begin(self, beginning: KpiStart) -> _Begun:
        """Find where to begin; anew, if silver was revised since the last time."""
        try:
            generation, source = prepare(self.settings, self.store, self.source_id, beginning)
        except SourceRevisedError as error:
            log.warning("silver_revised", error=error, action="counts all of silver again")
            generation, source = prepare(self.settings, self.store, self.source_id, KpiStart.ANEW)
        body = batches(self.settings, self.store, generation, source, self.driver)
        self.telemetry.watch(source.waiting_since)
        body.observer = KpiReporter(self.telemetry, body.tables)
        return _Begun(generation, source, body)

    def has_ended(self, spark: SparkSession, begun: _Begun, stop: Event, mode: TriggerMode) -> bool:
        """Run to the end; gives whether it is one, and not a beginning anew."""
        try:
            run_until(stop, start(spark, self.settings, begun.generation, begun.body, mode), begun.body, begun.source)
        except SourceRevisedError as error:
            log.warning("silver_revised", error=error, action="counts all of silver again")
            spark.sparkContext.setLogLevel("WARN")
            return False
        return True


@contextmanager
def observing(options: TelemetryOptions) -> Iterator[KpiTelemetry]:
    """Serve the metrics of the KPI query until the end of the block."""
    registry = registry_of_process()
    with served(registry, options):
        yield KpiTelemetry(QUERY, registry, Heartbeat(options.heartbeat_file))


if __name__ == "__main__":
    run(main)
