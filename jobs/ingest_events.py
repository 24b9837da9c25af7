"""Reads the event topic and fans it out into bronze, one silver table per game, and the dead letters.

Settings come from GAMELAKE_* variables (docs/settings.md). SIGTERM ends it after the batch that runs.
"""

import argparse

from gamelake.fanout.query import Mode, fan_out, prepare, run_until, start
from gamelake.lake.store import Store
from gamelake.lake.tables import DeltaTables
from gamelake.program import OK, run, stop_event
from gamelake.session import spark_session
from gamelake.settings import IngestSettings


def main() -> int:
    """Run the query until it is stopped, or until the topic's present end with --available-now."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--available-now", action="store_true", help="take what the topic holds now, then end")
    mode = Mode.AVAILABLE_NOW if parser.parse_args().available_now else Mode.CONTINUOUS
    settings = IngestSettings.from_env()
    store = Store(settings.lakehouse.location)
    with DeltaTables(settings.lakehouse.location) as tables:
        source = prepare(settings, store, tables)
        spark = spark_session(settings.stream, settings.lakehouse.location, settings.spark_jars)
        stop = stop_event()
        body = fan_out(settings, source, store, spark.sparkContext.defaultParallelism)
        run_until(stop, start(spark, settings, source, body, mode), body)
        spark.stop()
    return OK


if __name__ == "__main__":
    run(main)
