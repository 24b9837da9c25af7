"""Makes answers in one process, where memory is short: gold tables, key figures, and what live operations act on.

Does what `jobs/gold.py`, `jobs/kpis.py` and `jobs/live_ops.py` do, in one Spark. Settings are theirs
(docs/settings.md), except that each has its metrics at a port of its own, gold at GAMELAKE_METRICS_PORT and the others
at those that follow, and touches a file of its own, GAMELAKE_HEARTBEAT_FILE with a dot and its name. SIGTERM ends all
of them after what runs; so does the end of one, whose exit code is the process's.
"""

import argparse
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from functools import partial
from threading import Event

from gamelake.program import OK, run, stop_event
from gamelake.session import SharedSpark
from gamelake.settings.answers import AnswersSettings
from jobs import gold, kpis, live_ops


def main() -> int:
    """Run all until one ends or all are stopped."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    settings = AnswersSettings.from_env()
    spark = SharedSpark("answers", settings.gold.lakehouse.location, settings.gold.spark_jars)
    stop = stop_event()
    together(
        {
            "gold": partial(gold.keep_up, settings.gold, partial(spark.session, "gold"), stop),
            "kpis": partial(kpis.keep_up, settings.kpis, partial(spark.session, "kpis"), stop),
            "live_ops": partial(live_ops.keep_up, settings.live_ops, partial(spark.session, "live_ops"), stop),
        },
        stop,
    )
    spark.stop()
    return OK


def together(jobs: Mapping[str, Callable[[], None]], stop: Event) -> None:
    """Run each in a thread; the first that ends has all others asked to end too, and its error is raised.

    One that has failed must start again as its exit code says, which only the whole process can.
    """
    with ThreadPoolExecutor(len(jobs)) as pool:
        running = [pool.submit(job) for job in jobs.values()]
        wait(running, return_when=FIRST_COMPLETED)
        stop.set()
    for ended in running:
        ended.result()


if __name__ == "__main__":
    run(main)
