"""Keeps what live operations act on: each player's state in a compacted topic, and signals about games.

Settings come from GAMELAKE_* variables (docs/settings.md). SIGTERM ends it after the batch that runs.
"""

import argparse
from functools import partial
from threading import Event

from gamelake.layers.comments import EventComments
from gamelake.model.games import load_games
from gamelake.observability.lineage.emitter import lineage_emitter
from gamelake.observability.lineage.flow import RunKind
from gamelake.observability.lineage.job_flows import flow
from gamelake.observability.live_ops import LiveOpsReporter
from gamelake.observability.metrics.endpoint import registry_of_process
from gamelake.observability.metrics.listener import ProgressListener
from gamelake.observability.metrics.live_ops import LiveOpsTelemetry
from gamelake.observability.metrics.stream import Observed
from gamelake.observability.metrics.watch import observing
from gamelake.program import OK, run, stop_event
from gamelake.serving.live_ops.detector import Detector
from gamelake.serving.live_ops.query import live_ops
from gamelake.serving.live_ops.settings import LiveOpsSettings
from gamelake.session import Sessions, own_session
from gamelake.storage.store import Store
from gamelake.storage.tables import DeltaTables
from gamelake.streaming.batch import OpenStream
from gamelake.streaming.runner import TriggerMode, prepare, run_until, start


def main() -> int:
    """Run the query until it is stopped, or until the topic's present end with --available-now."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--available-now", action="store_true", help="take what the topic holds now, then end")
    mode = TriggerMode.AVAILABLE_NOW if parser.parse_args().available_now else TriggerMode.CONTINUOUS
    settings = LiveOpsSettings.from_env()
    reading = settings.reading
    sessions = partial(own_session, reading.stream, reading.lakehouse.location, reading.spark_jars)
    run_stream(settings, sessions, stop_event(), mode)
    return OK


def run_stream(
    settings: LiveOpsSettings, sessions: Sessions, stop: Event, mode: TriggerMode = TriggerMode.CONTINUOUS
) -> None:
    """Run the query until it is stopped, or has read the topic.

    Raises:
        GamelakeError: the error that ended the query or prevented its start.
    """
    reading = settings.reading
    store, detector, registry = Store(reading.lakehouse.location), Detector(), registry_of_process()
    reporter = LiveOpsReporter(LiveOpsTelemetry(reading.stream, registry), detector)
    comments = EventComments(load_games(reading.games_file), store)
    with DeltaTables(reading.lakehouse.location, comments) as tables:
        source = prepare(reading, store, tables, has_concurrent_stream=False)
        with (
            observing(reading.telemetry, _observed(settings, source), reading.kafka, registry) as telemetry,
            lineage_emitter(reading.lineage, "live_ops", reading.lakehouse.location) as lineage,
            sessions() as spark,
        ):
            kind = RunKind.BATCH if mode is TriggerMode.AVAILABLE_NOW else RunKind.STREAMING
            lineage.emit(flow(settings, source.generation.query_id, kind))
            if reading.telemetry.are_wanted:
                spark.streams.addListener(ProgressListener(telemetry))
            parts = live_ops(settings, source, store, spark, detector, reporter)
            parts.body.observer = telemetry
            run_until(stop, start(spark, reading, source, parts.body, mode), parts.body)
            parts.keeper.refresh()


def _observed(settings: LiveOpsSettings, source: OpenStream) -> Observed:
    return Observed(
        query=settings.reading.stream,
        topic=settings.reading.topic,
        trigger_seconds=settings.reading.trigger_interval.total_seconds(),
        positions=source.stream.positions(source.generation),
    )


if __name__ == "__main__":
    run(main)
