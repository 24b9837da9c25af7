"""How old events are when they can be read: the real job, the simulator at a steady rate, and the tables afterwards."""

import sys
import time
import uuid
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.fan_out import batch_of, times_of
from benchmarks.results import BatchTimes, Freshness, Lap
from benchmarks.stopwatch import Stopwatch
from benchmarks.traffic import CONTRACTS, PARTITIONS
from benchmarks.way import RecordsMissingError, Workload, job_variables, location_of
from gamelake.fanout.batch import BatchSummary
from gamelake.lake.manifest import BatchManifest, Manifests
from gamelake.lake.store import Store
from gamelake.naming import SILVER_EVENTS
from services.embedded.process import ChildProcess, Program
from services.embedded.topics import create_topic

RATE = 20_000
TABLES = 30
DURATION = timedelta(seconds=60)
WARM_UP = timedelta(seconds=15)
_FIRST_EVENTS = 20_000
_PATIENCE = timedelta(seconds=120)
_SECONDS_BETWEEN_LOOKS = 0.5
_STREAM = "ingest_events"

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Run:
    """A job that has ended: its batches, and the steady rate's start (seconds since 1970) and time."""

    batches: tuple[BatchSummary, ...]
    steady_since: float
    lap: Lap


def measure(workload: Workload, round_number: int) -> Freshness:
    """Run the job and the simulator beside each other, then ask the tables how old their rows were.

    Raises:
        RecordsMissingError: the job did not take everything in time.
    """
    workload = replace(workload, topic=f"freshness-{uuid.uuid4().hex[:8]}")
    create_topic(workload.bootstrap_servers, workload.topic, PARTITIONS)
    run = _run_job(workload)
    ages, batches = _ages(workload, run)
    p50, p95, greatest = np.percentile(ages, [50, 95, 100])
    return Freshness(
        round=round_number,
        events=len(ages),
        rate=RATE,
        p50=round(float(p50), 3),
        p95=round(float(p95), 3),
        max=round(float(greatest), 3),
        lap=run.lap,
        batches=batches,
    )


def _run_job(workload: Workload) -> _Run:
    log_file = workload.directory / "job.log"
    events = int(RATE * DURATION.total_seconds())
    job = ChildProcess(_job(workload, log_file))
    try:
        # The first batch makes the tables, and what comes before it is the start of a JVM: no event waits for it again.
        _simulate(workload, _FIRST_EVENTS, rate=0)
        _wait_for(job, log_file, _FIRST_EVENTS)
        steady_since, watch = time.time(), Stopwatch.start(workload.kafka_pid, job.pid)
        _simulate(workload, events, rate=RATE)
        _wait_for(job, log_file, _FIRST_EVENTS + events)
        lap = watch.stop()
    finally:
        job.stop(grace=timedelta(seconds=30))
    return _Run(_batches_in(log_file), steady_since, lap)


def _job(workload: Workload, log_file: Path) -> Program:
    return Program(
        name="the ingest job",
        command=(sys.executable, "-m", "jobs.ingest_events"),
        log_file=log_file,
        environment=job_variables(workload, CONTRACTS / "games.yaml"),
    )


def _simulate(workload: Workload, events: int, *, rate: int) -> None:
    """Run the simulator to its end."""
    options = {
        "bootstrap-servers": workload.bootstrap_servers,
        "registry-url": workload.registry_url,
        "topic": workload.topic,
        "games": TABLES,
        "events": events,
        "rate": rate,
        "ledger": workload.directory / "ledger.json",
        **dict.fromkeys(("late", "future", "duplicate", "undecodable", "unknown-game", "null-time"), 0),
    }
    arguments = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    program = Program(
        name="the simulator",
        command=(sys.executable, "-m", "services.simulator", *arguments),
        log_file=workload.directory / "simulator.log",
    )
    simulator = ChildProcess(program)
    while simulator.is_running():
        time.sleep(_SECONDS_BETWEEN_LOOKS)


def _wait_for(job: ChildProcess, log_file: Path, records: int) -> None:
    latest = time.monotonic() + _PATIENCE.total_seconds()
    while (taken := sum(batch.records for batch in _batches_in(log_file))) < records:
        job.raise_if_ended()
        if time.monotonic() > latest:
            raise RecordsMissingError(f"the job took {taken} records of {records}; its log is {log_file}")
        time.sleep(_SECONDS_BETWEEN_LOOKS)


def _batches_in(log_file: Path) -> tuple[BatchSummary, ...]:
    lines = log_file.read_text(errors="replace").splitlines()
    return tuple(batch for line in lines if (batch := batch_of(line)) is not None)


def _ages(workload: Workload, run: _Run) -> tuple[Floats, tuple[BatchTimes, ...]]:
    """Seconds from ingest to commit of each event after the warm-up, and the batches that these events came in."""
    manifests = Manifests(Store(location_of(workload)), _STREAM)
    first = run.steady_since + WARM_UP.total_seconds()
    ages, batches = [], []
    for batch in run.batches:
        ingested = _ingest_seconds(workload, manifests.read(batch.batch))
        ingested = ingested[ingested >= first]
        if len(ingested):
            ages.append(datetime.fromisoformat(batch.committed_at).timestamp() - ingested)
            batches.append(times_of(batch))
    return np.concatenate(ages), tuple(batches)


def _ingest_seconds(workload: Workload, manifest: BatchManifest | None) -> Floats:
    """When the platform took in each event of a batch, in seconds since 1970, by the rows of silver/events."""
    entries = [entry for entry in manifest.tables if entry.table == SILVER_EVENTS] if manifest else []
    folder = workload.directory / "lakehouse" / SILVER_EVENTS
    columns = [
        pq.ParquetFile(folder / file.path).read(["ingest_time"])["ingest_time"].cast(pa.int64()).to_numpy()
        for entry in entries
        for file in entry.files
    ]
    return np.concatenate([*columns, np.zeros(0, np.int64)]) / 1e6
