"""Reads the files of events that notifications name, into the tables that Kafka's events are in.

Settings come from GAMELAKE_* variables (docs/settings.md). SIGTERM ends it after the batch that runs.
"""

import argparse

from gamelake.contracts.games import load_games
from gamelake.fanout.observer import Several
from gamelake.fanout.quality_keeping import keeping_quality
from gamelake.fanout.query import Mode, prepare, run_until, start
from gamelake.files.opening import file_fan_out
from gamelake.lake.store import Store
from gamelake.lake.tables import DeltaTables
from gamelake.program import OK, run, stop_event
from gamelake.quality.daily import QualityTable
from gamelake.session import spark_session
from gamelake.settings.files import FilesSettings
from gamelake.silver.comments import EventComments
from gamelake.telemetry.files import FilesTelemetry
from gamelake.telemetry.listener import ProgressListener
from gamelake.telemetry.observing import observing
from gamelake.telemetry.serving import registry_of_process
from gamelake.telemetry.stream import Observed

_REMEMBERED_BATCHES = 20


def main() -> int:
    """Run the query until it is stopped, or until the topic's present end with --available-now."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--available-now", action="store_true", help="take what has been notified now, then end")
    mode = Mode.AVAILABLE_NOW if parser.parse_args().available_now else Mode.CONTINUOUS
    settings = FilesSettings.from_env()
    reading = settings.reading
    store = Store(reading.lakehouse.location)
    comments = EventComments(load_games(reading.games_file), store)
    with DeltaTables(reading.lakehouse.location, comments) as tables:
        source = prepare(reading, store, tables)
        observed = Observed(
            query=reading.stream,
            topic=reading.topic,
            trigger_seconds=reading.trigger_interval.total_seconds(),
            positions=source.stream.positions(source.generation),
            recent=tuple(source.stream.manifests.last(_REMEMBERED_BATCHES)),
        )
        registry = registry_of_process()
        with (
            observing(reading.telemetry, observed, reading.kafka, registry) as telemetry,
            keeping_quality(QualityTable(store, reading.stream, comments)) as quality,
        ):
            spark = spark_session(reading.stream, reading.lakehouse.location, reading.spark_jars)
            if reading.telemetry.are_wanted:
                spark.streams.addListener(ProgressListener(telemetry))
            stop = stop_event()
            body = file_fan_out(settings, source, store, spark.sparkContext.defaultParallelism)
            body.observer = Several((telemetry, FilesTelemetry(reading.stream, registry), quality))
            run_until(stop, start(spark, reading, source, body, mode), body)
            spark.stop()
    return OK


if __name__ == "__main__":
    run(main)
