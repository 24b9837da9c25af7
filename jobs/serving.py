"""Serving in one process, where memory is short: gold tables with the KPIs, and live operations.

Does what `jobs/gold.py` and `jobs/live_ops.py` do, in one Spark. Settings are theirs (docs/settings.md), except that
each has its metrics at a port of its own, gold at GAMELAKE_METRICS_PORT and live operations at the next one, and
touches a file of its own, GAMELAKE_HEARTBEAT_FILE with a dot and its name. SIGTERM ends both after what runs; so does
the end of one, whose exit code is the process's.
"""

from functools import partial

from gamelake.command import command_parser
from gamelake.program import OK, run, run_together, stop_event
from gamelake.serving.settings import ServingSettings
from gamelake.session import SharedSpark
from jobs import gold, live_ops


def main() -> int:
    """Run all until one ends or all are stopped."""
    command_parser(__doc__).parse_args()
    settings = ServingSettings.from_env()
    spark = SharedSpark("serving", settings.gold.lakehouse.location, settings.gold.spark_jars)
    stop = stop_event()
    run_together(
        {
            "gold": partial(gold.run_continuously, settings.gold, partial(spark.session, "gold"), stop),
            "live_ops": partial(live_ops.stream_job(settings.live_ops).run, partial(spark.session, "live_ops"), stop),
        },
        stop,
    )
    spark.stop()
    return OK


if __name__ == "__main__":
    run(main)
