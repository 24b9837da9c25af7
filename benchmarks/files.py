"""Measures the ingestion of files of events: `python -m benchmarks.files`.

Kafka, registry and job run on this machine; the files are in a folder. They have compressed lines of JSON of 30 games,
and are written, with their notifications, before the job starts, as after an outage. The time starts with the first
batch, not with the job.
"""

import argparse
import gzip
import json
import sys
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from confluent_kafka import Producer

from benchmarks.fan_out import batch_of
from benchmarks.steady import log_of, test_bed
from benchmarks.traffic import CONTRACTS
from benchmarks.workload import RecordsMissingError, Workload, job_variables
from gamelake.model.games import load_games
from gamelake.schemas.event_schemas import load_schemas, register
from gamelake.streaming.batch import BatchSummary
from gamelake.streaming.files.changes import ObjectChange, publish
from services.notifier.folder import Folder
from tools.embedded.kafka import create_topic
from tools.embedded.process import ChildProcess, Program

_TOPIC = "files.notifications"
_PATIENCE = timedelta(minutes=15)
_PLAYERS = 20_000


def main() -> int:
    """Measure, and print the results as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.files", description=__doc__)
    parser.add_argument("--files", type=int, default=5_000, help="default: %(default)s")
    parser.add_argument("--events", type=int, default=1_000, help="in each file; default: %(default)s")
    arguments = parser.parse_args()
    with test_bed("files") as workload:
        print(json.dumps(measure(workload, arguments.files, arguments.events), indent=2))
    return 0


def measure(workload: Workload, files: int, events: int) -> dict[str, float]:
    """Write the files, send their notifications, and run the job.

    Raises:
        RecordsMissingError: not every event became a row.
    """
    register(load_schemas(CONTRACTS, 3), registry_url=workload.registry_url, topic=workload.topic)
    create_topic(workload.bootstrap_servers, _TOPIC, 2)
    folder = Folder(workload.directory / "landing")
    stored = sum(_write(workload.directory / "landing", number, events) for number in range(files))
    producer = Producer({"bootstrap.servers": workload.bootstrap_servers, "acks": "all"})
    publish(producer, _TOPIC, _changes(folder, files))
    batches = _run(workload)
    records, seconds = sum(batch.records for batch in batches), _seconds(batches)
    if records != files * events:
        raise RecordsMissingError(f"{records:,} records of {files * events:,} were committed")
    return {
        "files": files,
        "events": records,
        "stored_mib": round(stored / 2**20, 1),
        "batches": len(batches),
        "seconds": round(seconds, 1),
        "events_per_second": round(records / seconds),
        "commit_seconds": round(sum(batch.commit_seconds for batch in batches), 1),
    }


def _write(folder: Path, number: int, events: int) -> int:
    path = folder / _key(number)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.write_bytes(content(number, events))


def content(number: int, events: int) -> bytes:
    """A compressed file of `events` events; each `number` has other events."""
    return gzip.compress("\n".join(_lines(number, events)).encode(), compresslevel=1)


def _key(number: int) -> str:
    return f"2026/11/22/{number % 24:02d}/{number:06d}.json.gz"


def _lines(number: int, events: int) -> Iterator[str]:
    """Events of one game, some minutes long, as a game's server collects them."""
    random = Random(number)
    titles = [game.match[0] for game in load_games(CONTRACTS / "games.yaml").games]
    title, begun = titles[number % len(titles)], datetime.now(UTC) - timedelta(minutes=number % 600)
    for second in range(events):
        moment = (begun + timedelta(milliseconds=50 * second)).isoformat()
        params = {"platform": random.choice(("ios", "android")), "app_version": "1.4.2", "level": second % 80}
        yield json.dumps(
            {
                "event_id": str(uuid.UUID(int=random.getrandbits(128), version=4)),
                "event_name": "level_completed",
                "event_time": moment,
                "ingest_time": moment,
                "game_name": title,
                "gamer_id": f"{random.randrange(_PLAYERS):032x}",
                "session_id": str(uuid.UUID(int=random.getrandbits(128), version=4)),
                "event_params": params,
                "experiment_ids": ["control"],
                "attributes": {"mode": "ranked"},
                "connection_type": "CONNECTION_TYPE_WIFI",
            }
        )


def _changes(folder: Folder, files: int) -> Iterator[ObjectChange]:
    for number in range(files):
        change = folder.change(_key(number))
        if change is not None:
            yield change


def _run(workload: Workload) -> list[BatchSummary]:
    log = log_of(workload, "ingest_files")
    variables = job_variables(workload, CONTRACTS / "games.yaml") | {
        "GAMELAKE_LANDING": (workload.directory / "landing").resolve().as_uri(),
        "GAMELAKE_NOTIFICATIONS_TOPIC": _TOPIC,
    }
    command = (sys.executable, "-m", "jobs.ingest_files", "--available-now")
    job = ChildProcess(Program(name="ingest_files", command=command, log_file=log, environment=variables))
    latest = time.monotonic() + _PATIENCE.total_seconds()
    while job.is_running():
        if time.monotonic() > latest:
            job.stop(grace=timedelta(seconds=10))
            raise RecordsMissingError(f"the job did not end in {_PATIENCE}; its log ends with {log.read_text()[-800:]}")
        time.sleep(0.5)
    return [batch for line in log.read_text().splitlines() if (batch := batch_of(line)) is not None]


def _seconds(batches: list[BatchSummary]) -> float:
    """From the start of the first batch to the end of the last one."""
    if not batches:
        return 0.0
    ends = [datetime.fromisoformat(batch.committed_at) for batch in batches]
    return (ends[-1] - ends[0]).total_seconds() + batches[0].decide_seconds + batches[0].commit_seconds


if __name__ == "__main__":
    sys.exit(main())
