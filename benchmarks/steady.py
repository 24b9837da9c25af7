"""Services, jobs and the simulator for benchmarks at a steady rate."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path

from benchmarks.harness import option
from benchmarks.machine import SPARK_JARS
from benchmarks.traffic import CONTRACTS, PARTITIONS
from benchmarks.workload import RecordsMissingError, Workload, job_variables
from tools.embedded import EmbeddedServices
from tools.embedded.kafka import create_topic
from tools.embedded.process import ChildProcess, Program
from tools.simulator.spec import NO_BAD_EVENTS

POLL_SECONDS = 0.5
# Sent before the measurement, so that no measured event waits for the start of the JVM and the creation of tables.
FIRST_EVENTS = 20_000
_NO_BAD_EVENTS = {name.replace("_", "-"): share for name, share in asdict(NO_BAD_EVENTS).items()}


@dataclass(frozen=True, slots=True)
class SteadyRate:
    """Options of a benchmark at a steady rate."""

    rate: int = option(20_000, "events per second")
    seconds: int = option(90, "how long")


@contextmanager
def test_bed(folder: Path) -> Iterator[Workload]:
    """Start services with an empty topic, in an empty folder."""
    with EmbeddedServices(folder / "services") as services:
        create_topic(services.kafka.bootstrap_servers, "events", PARTITIONS)
        yield Workload(
            bootstrap_servers=services.kafka.bootstrap_servers,
            registry_url=services.registry.url,
            kafka_pid=services.kafka.process.pid,
            topic="events",
            records=0,
            spark_jars=SPARK_JARS,
            directory=folder,
        )


@contextmanager
def running_jobs(workload: Workload, *names: str) -> Iterator[list[ChildProcess]]:
    """Run jobs by the names of their modules, each with a log file; they are stopped at the end of the block."""
    variables = job_variables(workload, CONTRACTS / "games.yaml")
    jobs = [_start(name, f"jobs.{name}", log_of(workload, name), environment=variables) for name in names]
    try:
        yield jobs
    finally:
        for job in jobs:
            job.stop(grace=timedelta(seconds=60))


def start_simulator(workload: Workload, events: int, *, rate: int, games: int) -> ChildProcess:
    """Start a simulator that sends `events` events without defects at `rate` per second; 0 is as fast as possible."""
    options = {
        "target": "kafka",
        "bootstrap-servers": workload.bootstrap_servers,
        "registry-url": workload.registry_url,
        "topic": workload.topic,
        "games": games,
        "events": events,
        "rate": rate,
        # Other players and events than before: silver has each event once.
        "seed": events,
        "ledger": workload.directory / "ledger.json",
        **_NO_BAD_EVENTS,
    }
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    return _start("the simulator", "tools.simulator", log_of(workload, "simulator"), *words)


def simulate(workload: Workload, events: int, *, rate: int, games: int) -> None:
    """Run a simulator to its end."""
    simulator = start_simulator(workload, events, rate=rate, games=games)
    while simulator.is_running():
        time.sleep(POLL_SECONDS)


def wait_for(records: int, taken: Callable[[], int], jobs: list[ChildProcess], patience: timedelta) -> None:
    """Wait until `records` records are committed.

    Raises:
        RecordsMissingError: they are not within the time limit.
        ServiceEndedError: a job has ended.
    """
    latest = time.monotonic() + patience.total_seconds()
    while (found := taken()) < records:
        for job in jobs:
            job.raise_if_ended()
        if time.monotonic() > latest:
            raise RecordsMissingError(f"{found:,} of {records:,} records were committed in {patience}")
        time.sleep(POLL_SECONDS)


def log_of(workload: Workload, name: str) -> Path:
    """The log file of a job or of the simulator."""
    return workload.directory / f"{name}.log"


def _start(
    name: str, module: str, log_file: Path, *words: str, environment: Mapping[str, str] | None = None
) -> ChildProcess:
    command = (sys.executable, "-m", module, *words)
    return ChildProcess(Program(name=name, command=command, log_file=log_file, environment=environment or {}))
