"""Measures the delay of the KPI tables: `python -m benchmarks.kpis`.

Kafka, registry, ingest job, KPI query, and the simulator at a steady rate run on this machine. The delay is the age of
the first event that is in no KPI table: the number of events sent but not counted, divided by the rate.
"""

import argparse
import json
import os
import sys
import time
from datetime import timedelta
from functools import partial

import numpy as np
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from benchmarks.steady import (
    FIRST_EVENTS,
    POLL_SECONDS,
    running_jobs,
    simulate,
    start_simulator,
    test_bed,
    wait_for,
)
from benchmarks.workload import RecordsMissingError, Workload, location_of
from gamelake.model.errors import GamelakeError
from tools.embedded import ServiceError
from tools.embedded.java import spark_environment
from tools.embedded.process import ChildProcess

_GAMES = 30
_PATIENCE = timedelta(minutes=5)


def measure(workload: Workload, rate: int, seconds: int) -> dict[str, float]:
    """Run both jobs and the simulator, and poll the tables.

    Raises:
        RecordsMissingError: the first events were not counted in time.
        ServiceError: a program ended.
    """
    with running_jobs(workload, "ingest_events", "kpis") as jobs:
        simulate(workload, FIRST_EVENTS, rate=0, games=_GAMES)
        wait_for(FIRST_EVENTS, partial(_counted, workload), jobs, _PATIENCE)
        started = time.time()
        simulator = start_simulator(workload, rate * seconds, rate=rate, games=_GAMES)
        behind = _seconds_behind(workload, simulator, started, rate)
    p50, p95, most = np.percentile(behind, [50, 95, 100])
    return {"rate": rate, "seconds": seconds, "p50": p50, "p95": p95, "max": most}


def _seconds_behind(workload: Workload, simulator: ChildProcess, started: float, rate: int) -> list[float]:
    """The delay in seconds at each poll, while the simulator sends."""
    behind = []
    while simulator.is_running():
        time.sleep(POLL_SECONDS)
        counted, now = _counted(workload) - FIRST_EVENTS, time.time() - started
        behind.append(max(now - counted / rate, 0))
    return behind


def _counted(workload: Workload) -> int:
    try:
        arrived = DeltaTable(location_of(workload).child("gold/kpi_late")).to_pyarrow_table(columns=["arrived"])
    except (TableNotFoundError, DeltaError):
        return 0
    return int(pc.sum(arrived["arrived"]).as_py() or 0)


def main() -> int:
    """Measure, and print the results as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kpis", description=__doc__)
    parser.add_argument("--rate", type=int, default=20_000, help="events per second; default: %(default)s")
    parser.add_argument("--seconds", type=int, default=120, help="how long; default: %(default)s")
    arguments = parser.parse_args()
    os.environ |= spark_environment()
    try:
        with test_bed("kpis") as workload:
            figures = measure(workload, arguments.rate, arguments.seconds)
    except (GamelakeError, ServiceError, RecordsMissingError) as error:
        print(f"benchmarks.kpis: {error}", file=sys.stderr)
        return 1
    print(json.dumps({name: round(value, 1) for name, value in figures.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
