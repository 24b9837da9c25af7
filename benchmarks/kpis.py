"""Measures the delay of the KPI tables: `python -m benchmarks.kpis`.

Kafka, registry, ingest job, gold job, and the simulator at a steady rate run on this machine. The delay is the age of
the first event that is not in gold/kpi_daily: the number of events sent but not counted, divided by the rate.
"""

import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from functools import partial

import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from benchmarks.harness import Benchmark, Run, main
from benchmarks.results import Measurement, percentiles
from benchmarks.steady import (
    FIRST_EVENTS,
    POLL_SECONDS,
    SteadyRate,
    running_jobs,
    simulate,
    start_simulator,
    test_bed,
    wait_for,
)
from benchmarks.workload import Workload, location_of
from tools.embedded.process import ChildProcess

_GAMES = 30
_PATIENCE = timedelta(minutes=5)


def measure(run: Run[SteadyRate]) -> Iterator[Measurement]:
    """Run both jobs and the simulator, and poll the tables.

    Raises:
        RecordsMissingError: the first events were not counted in time.
        ServiceError: a program ended.
    """
    rate, seconds = run.settings.rate, run.settings.seconds
    with test_bed(run.folder) as workload, running_jobs(workload, "ingest_events", "gold") as jobs:
        simulate(workload, FIRST_EVENTS, rate=0, games=_GAMES)
        wait_for(FIRST_EVENTS, partial(_counted, workload), jobs, _PATIENCE)
        started = time.time()
        simulator = start_simulator(workload, rate * seconds, rate=rate, games=_GAMES)
        behind = _seconds_behind(workload, simulator, started, rate)
    yield Measurement(part="delay", subject="gold/kpi_daily", values=percentiles(behind))


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
        events = DeltaTable(location_of(workload).child("gold/kpi_daily")).to_pyarrow_table(columns=["events"])
    except (TableNotFoundError, DeltaError):
        return 0
    return int(pc.sum(events["events"]).as_py() or 0)


BENCHMARK = Benchmark(
    name="kpis",
    measures="Measure the delay of the KPI tables.",
    settings=SteadyRate(seconds=120),
    quick=SteadyRate(rate=2_000, seconds=20),
    measure=measure,
    runs_spark=True,
)


if __name__ == "__main__":
    sys.exit(main(BENCHMARK))
