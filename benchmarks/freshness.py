"""Measures freshness, the age of events when they can be read: the ingest job, with the simulator at a steady rate."""

import time
import uuid
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.fan_out import batch_of
from benchmarks.results import Values, percentiles
from benchmarks.steady import FIRST_EVENTS, log_of, running_jobs, simulate, wait_for
from benchmarks.stopwatch import Lap, Stopwatch
from benchmarks.traffic import PARTITIONS
from benchmarks.workload import Workload, location_of
from gamelake.ledger.manifests import BatchManifest, Manifests
from gamelake.model.arrays import Floats
from gamelake.model.naming import SILVER_EVENTS
from gamelake.objects.store import Store
from gamelake.streaming.driver.observers import BatchSummary
from tools.embedded.kafka import create_topic

RATE = 20_000
TABLES = 30
DURATION = timedelta(seconds=60)
WARM_UP = timedelta(seconds=15)
_PATIENCE = timedelta(seconds=120)
_STREAM = "ingest_events"


@dataclass(frozen=True, slots=True)
class _Run:
    """A finished run: its batches, the start of the steady rate (seconds since 1970), and its times."""

    batches: tuple[BatchSummary, ...]
    steady_since: float
    lap: Lap


def measure(workload: Workload) -> Values:
    """Run the job and the simulator concurrently, then compute the age of the rows.

    Raises:
        RecordsMissingError: the job did not commit everything in time.
        ServiceEndedError: the job has ended.
    """
    workload = replace(workload, topic=f"freshness-{uuid.uuid4().hex[:8]}")
    create_topic(workload.bootstrap_servers, workload.topic, PARTITIONS)
    run = _run_job(workload)
    ages, batches = _ages(workload, run)
    return percentiles(ages) | {
        "events": len(ages),
        "batches": len(batches),
        "files per table and batch": sum(each.files for each in batches) / sum(each.tables for each in batches),
        "decide s": median(each.decide_seconds for each in batches),
        "commit s": median(each.commit_seconds for each in batches),
        "cores busy": round((run.lap.cpu_seconds or 0) / run.lap.seconds, 2),
    }


def _run_job(workload: Workload) -> _Run:
    events = int(RATE * DURATION.total_seconds())
    with running_jobs(workload, _STREAM) as jobs:
        simulate(workload, FIRST_EVENTS, rate=0, games=TABLES)
        wait_for(FIRST_EVENTS, partial(_records, workload), jobs, _PATIENCE)
        steady_since, watch = time.time(), Stopwatch.start(workload.kafka_pid, jobs[0].pid)
        simulate(workload, events, rate=RATE, games=TABLES)
        wait_for(FIRST_EVENTS + events, partial(_records, workload), jobs, _PATIENCE)
        lap = watch.stop()
    return _Run(_batches(workload), steady_since, lap)


def _records(workload: Workload) -> int:
    return sum(batch.records for batch in _batches(workload))


def _batches(workload: Workload) -> tuple[BatchSummary, ...]:
    lines = log_of(workload, _STREAM).read_text(errors="replace").splitlines()
    return tuple(batch for line in lines if (batch := batch_of(line)) is not None)


def _ages(workload: Workload, run: _Run) -> tuple[Floats, list[BatchSummary]]:
    """Seconds from ingest to commit of each event after the warm-up, and the batches that these events came in."""
    manifests = Manifests(Store(location_of(workload)), _STREAM)
    first = run.steady_since + WARM_UP.total_seconds()
    ages, batches = list[Floats](), list[BatchSummary]()
    for batch in run.batches:
        ingested = _ingest_seconds(workload, manifests.read(batch.batch))
        ingested = ingested[ingested >= first]
        if len(ingested):
            ages.append(datetime.fromisoformat(batch.committed_at).timestamp() - ingested)
            batches.append(batch)
    return np.concatenate(ages), batches


def _ingest_seconds(workload: Workload, manifest: BatchManifest | None) -> Floats:
    """Ingest time of each event of a batch, in seconds since 1970, from the rows of silver/events."""
    entries = [entry for entry in manifest.tables if entry.table == SILVER_EVENTS] if manifest else []
    folder = workload.directory / "lakehouse" / SILVER_EVENTS
    columns = [
        pq.ParquetFile(folder / file.path).read(["ingest_time"])["ingest_time"].cast(pa.int64()).to_numpy()
        for entry in entries
        for file in entry.files
    ]
    return np.concatenate([*columns, np.zeros(0, np.int64)]) / 1e6
