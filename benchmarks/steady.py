"""What is measured under a steady load has in common: the services, the jobs, and the simulator at a rate."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.traffic import CONTRACTS, PARTITIONS
from benchmarks.workload import RecordsMissingError, Workload, job_variables
from tools.embedded import EmbeddedServices
from tools.embedded.kafka import create_topic
from tools.embedded.process import ChildProcess, Program
from tools.embedded.service import REPOSITORY
from tools.simulator.spec import NO_BAD_EVENTS

POLL_SECONDS = 0.5
# The first batch makes the tables, and what comes before it is the start of a JVM: no measured event waits for it.
FIRST_EVENTS = 20_000
_NO_BAD_EVENTS = {name.replace("_", "-"): share for name, share in asdict(NO_BAD_EVENTS).items()}


@contextmanager
def test_bed(name: str) -> Iterator[Workload]:
    """Services of their own with an empty topic, in a folder that goes with them."""
    with (
        TemporaryDirectory(prefix=f"gamelake-{name}-") as folder,
        EmbeddedServices(Path(folder) / "services") as services,
    ):
        create_topic(services.kafka.bootstrap_servers, "events", PARTITIONS)
        yield Workload(
            bootstrap_servers=services.kafka.bootstrap_servers,
            registry_url=services.registry.url,
            kafka_pid=services.kafka.process.pid,
            topic="events",
            records=0,
            spark_jars=REPOSITORY / "build" / "jars" / "spark",
            directory=Path(folder),
        )


@contextmanager
def running_jobs(workload: Workload, *names: str) -> Iterator[list[ChildProcess]]:
    """Jobs by the names of their modules, each with a log beside the lakehouse; asked to end with the block."""
    variables = job_variables(workload, CONTRACTS / "games.yaml")
    jobs = [_start(name, f"jobs.{name}", log_of(workload, name), environment=variables) for name in names]
    try:
        yield jobs
    finally:
        for job in jobs:
            job.stop(grace=timedelta(seconds=60))


def start_simulator(workload: Workload, events: int, *, rate: int, games: int) -> ChildProcess:
    """Send so many events, none of them bad, at a rate (events per second); 0 is as fast as it goes."""
    options = {
        "target": "kafka",
        "bootstrap-servers": workload.bootstrap_servers,
        "registry-url": workload.registry_url,
        "topic": workload.topic,
        "games": games,
        "events": events,
        "rate": rate,
        # Other players and other events than those that came before: silver takes each event once.
        "seed": events,
        "ledger": workload.directory / "ledger.json",
        **_NO_BAD_EVENTS,
    }
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    return _start("the simulator", "tools.simulator", log_of(workload, "simulator"), *words)


def simulate(workload: Workload, events: int, *, rate: int, games: int) -> None:
    """Send events, and return when all are sent."""
    simulator = start_simulator(workload, events, rate=rate, games=games)
    while simulator.is_running():
        time.sleep(POLL_SECONDS)


def wait_for(records: int, taken: Callable[[], int], jobs: list[ChildProcess], patience: timedelta) -> None:
    """Return when so many records have been taken.

    Raises:
        RecordsMissingError: they were not, in time.
        ServiceEndedError: a job has ended.
    """
    latest = time.monotonic() + patience.total_seconds()
    while (found := taken()) < records:
        for job in jobs:
            job.raise_if_ended()
        if time.monotonic() > latest:
            raise RecordsMissingError(f"{found:,} of {records:,} records were taken in {patience}")
        time.sleep(POLL_SECONDS)


def log_of(workload: Workload, name: str) -> Path:
    """Where a job or the simulator writes."""
    return workload.directory / f"{name}.log"


def _start(
    name: str, module: str, log_file: Path, *words: str, environment: Mapping[str, str] | None = None
) -> ChildProcess:
    command = (sys.executable, "-m", module, *words)
    return ChildProcess(Program(name=name, command=command, log_file=log_file, environment=environment or {}))
