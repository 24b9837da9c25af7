"""Reads the event topic and fans it out into bronze, one silver table per game, and the dead letters.

Settings come from GAMELAKE_* variables (docs/settings.md). SIGTERM ends it after the batch that runs.
"""

import argparse

from gamelake.fanout.batch import OpenStream
from gamelake.fanout.query import Mode, fan_out, prepare, run_until, start
from gamelake.lake.store import Store
from gamelake.lake.tables import DeltaTables
from gamelake.program import OK, run, stop_event
from gamelake.session import spark_session
from gamelake.settings import IngestSettings
from gamelake.telemetry.listener import ProgressListener
from gamelake.telemetry.observing import observing
from gamelake.telemetry.stream import Observed

_REMEMBERED_BATCHES = 20


def main() -> int:
    """Run the query until it is stopped, or until the topic's present end with --available-now."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--available-now", action="store_true", help="take what the topic holds now, then end")
    mode = Mode.AVAILABLE_NOW if parser.parse_args().available_now else Mode.CONTINUOUS
    settings = IngestSettings.from_env()
    store = Store(settings.lakehouse.location)
    with DeltaTables(settings.lakehouse.location) as tables:
        source = prepare(settings, store, tables)
        with observing(settings.telemetry, _observed(settings, source), settings.kafka) as telemetry:
            spark = spark_session(settings.stream, settings.lakehouse.location, settings.spark_jars)
            if settings.telemetry.are_wanted:
                spark.streams.addListener(ProgressListener(telemetry))
            stop = stop_event()
            body = fan_out(settings, source, store, spark.sparkContext.defaultParallelism)
            body.observer = telemetry
            run_until(stop, start(spark, settings, source, body, mode), body)
            spark.stop()
    return OK


def _observed(settings: IngestSettings, source: OpenStream) -> Observed:
    return Observed(
        query=settings.stream,
        topic=settings.topic,
        trigger_seconds=settings.trigger_interval.total_seconds(),
        positions=source.stream.positions(source.generation),
        recent=tuple(source.stream.manifests.last(_REMEMBERED_BATCHES)),
    )


if __name__ == "__main__":
    run(main)
