"""The frame of all streaming jobs: tables, telemetry, lineage, Spark session and query, opened in this order."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import Any

from prometheus_client import CollectorRegistry
from pyspark.sql import SparkSession

from gamelake.command import command_parser
from gamelake.contract.games import load_games
from gamelake.layers.comments import EventComments
from gamelake.ledger.held_tables import stream_tables
from gamelake.objects.store import Store
from gamelake.observability.lineage.emitter import Emitter, lineage_emitter
from gamelake.observability.lineage.flow import RunKind, SchemaVersions, nothing_known
from gamelake.observability.metrics.endpoint import registry_of_process
from gamelake.observability.metrics.listener import ProgressListener
from gamelake.observability.metrics.stream import Observed, StreamTelemetry
from gamelake.observability.metrics.watch import observing
from gamelake.program import OK, stop_event
from gamelake.session import Sessions, own_session
from gamelake.streaming.driver.batch import FanOut, OpenStream
from gamelake.streaming.driver.runner import TriggerMode, prepare, run_until, start
from gamelake.streaming.driver.settings import IngestSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenJob:
    """A job whose session has started, and whose query has not.

    Attributes:
        store: the lakehouse.
        comments: for the columns of its tables.
        source: the open stream.
        observed: the stream's newest batches, as its metrics count them.
        metrics: where more metrics can be added.
        telemetry: an observer of the batches.
        lineage: emits what the job reads and writes.
        kind: the kind of run, for lineage.
        spark: the session.
    """

    store: Store
    comments: EventComments
    source: OpenStream
    observed: Observed
    metrics: CollectorRegistry
    telemetry: StreamTelemetry
    lineage: Emitter
    kind: RunKind
    spark: SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamJob:
    """The parts in which streaming jobs differ.

    Attributes:
        name: of the job, in lineage.
        settings: of its stream.
        query: makes the batch function with its observers. The block ends when the query has ended, with its error.
        counted_batches: number of newest batches whose games have metrics from the start.
        has_concurrent_stream: see `prepare`.
        only_plans: see `own_session`.
        schemas: registered versions of the events' schemas, for lineage.
    """

    name: str
    settings: IngestSettings
    query: Callable[[OpenJob], AbstractContextManager[FanOut[Any]]]
    counted_batches: int = 0
    has_concurrent_stream: bool = True
    only_plans: bool = False
    schemas: SchemaVersions = nothing_known

    def run(
        self,
        sessions: Sessions,
        stop: Event,
        mode: TriggerMode = TriggerMode.CONTINUOUS,
        running: Event | None = None,
    ) -> None:
        """Run the query until it is stopped, or has read its topic; `running` is set once it runs.

        Raises:
            GamelakeError: the error that ended the query or prevented its start.
        """
        settings, location = self.settings, self.settings.lakehouse.location
        store, metrics = Store(location), registry_of_process()
        comments = EventComments(load_games(settings.games_file), store)
        with stream_tables(location, comments) as tables:
            source = prepare(settings, store, tables, has_concurrent_stream=self.has_concurrent_stream)
            observed = self._observed(source)
            with (
                observing(settings.telemetry, observed, settings.kafka, metrics) as telemetry,
                lineage_emitter(settings.lineage, self.name, location, self.schemas) as lineage,
                sessions() as spark,
                self.query(
                    OpenJob(
                        store=store,
                        comments=comments,
                        source=source,
                        observed=observed,
                        metrics=metrics,
                        telemetry=telemetry,
                        lineage=lineage,
                        kind=RunKind.BATCH if mode is TriggerMode.AVAILABLE_NOW else RunKind.STREAMING,
                        spark=spark,
                    )
                ) as body,
            ):
                if settings.telemetry.are_wanted:
                    spark.streams.addListener(ProgressListener(telemetry))
                started = start(spark, settings, source, body, mode)
                if running is not None:
                    running.set()
                run_until(stop, started, body)

    def _observed(self, source: OpenStream) -> Observed:
        return Observed(
            query=self.settings.stream,
            topic=self.settings.topic,
            trigger_seconds=self.settings.trigger_interval.total_seconds(),
            positions=source.stream.positions(source.generation),
            recent=tuple(source.stream.manifests.last(self.counted_batches)),
        )


def run_program(description: str | None, job: Callable[[], StreamJob]) -> int:
    """Run a streaming job until a signal; with --available-now, to the current end of its topic.

    Args:
        description: for the help, the docstring of the program.
        job: reads the settings, after the options.
    """
    parser = command_parser(description)
    parser.add_argument("--available-now", action="store_true", help="read to the current end of the topic, then end")
    mode = TriggerMode.AVAILABLE_NOW if parser.parse_args().available_now else TriggerMode.CONTINUOUS
    stream = job()
    settings = stream.settings
    sessions = partial(
        own_session, settings.stream, settings.lakehouse.location, settings.spark_jars, only_plans=stream.only_plans
    )
    stream.run(sessions, stop_event(), mode)
    return OK
