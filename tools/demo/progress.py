"""Progress of a running demo: records in Kafka, batches that the ingest job has committed, memory of all processes."""

import os
import re
import subprocess
import time
from collections import defaultdict
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined] # the stubs do not export OffsetSpec
    AdminClient,
    OffsetSpec,
)

from gamelake.objects.store import Store
from tools.demo.figures import RunSample
from tools.demo.screen import RunStatus

_BATCH = re.compile(rb'\{"time": .*"event": "batch_committed", .*\}$')
ANSWER_SECONDS = 15.0
SECONDS_BETWEEN_ATTEMPTS = 0.1
# A broker announces itself as the leader of a new topic a moment before it is.
_SOON_OVER = frozenset({KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE})
_KIB = 1024
SECONDS_BETWEEN_SAMPLES = 1.0
_RATE_WINDOW_SECONDS = 8.0
_LAYERS = ("bronze/", "silver/", "dead_letters/", "quarantine/")


class BatchLogLine(msgspec.Struct, frozen=True, kw_only=True):
    """The log line of a batch that is committed to all tables, in the format `json`."""

    batch: int
    records: int
    dead_letters: dict[str, int]
    duplicates: dict[str, int] = {}
    quarantined: dict[str, int] = {}
    dropped: dict[str, int] = {}
    tables: int
    files: int
    bytes: int
    decide_seconds: float
    commit_seconds: float
    committed_at: datetime

    @property
    def without_a_row(self) -> int:
        """Records that did not become a row of silver."""
        counted = (self.dead_letters, self.duplicates, self.quarantined, self.dropped)
        return sum(sum(each.values()) for each in counted)

    @property
    def seconds(self) -> float:
        """Duration of the batch."""
        return self.decide_seconds + self.commit_seconds


def batch_of(line: bytes) -> BatchLogLine | None:
    """Parse a line of the log; None if it is not the line of a batch.

    Raises:
        msgspec.ValidationError: the line of a batch has other fields than expected.
    """
    found = _BATCH.search(line)
    return None if found is None else msgspec.json.decode(found[0], type=BatchLogLine)


class JobLog:
    """Follows the log of the ingest job from its present end.

    Args:
        path: the log; it may not exist yet.
        decided: batches that were decided before; the job logs the last of them again when it finishes it.
    """

    def __init__(self, path: Path, decided: Collection[int]) -> None:
        self._path = path
        self._decided = frozenset(decided)
        self._position = path.stat().st_size if path.exists() else 0
        self._begun = b""

    def new_batches(self) -> list[BatchLogLine]:
        """Return the batches logged since the last call."""
        with self._path.open("rb") as log:
            log.seek(self._position)
            added = log.read()
        self._position += len(added)
        *lines, self._begun = (self._begun + added).split(b"\n")
        found = [batch for line in lines if (batch := batch_of(line)) is not None]
        return [batch for batch in found if batch.batch not in self._decided]


class TopicEnd:
    """Reads the end offsets of a topic's partitions."""

    def __init__(self, bootstrap_servers: str, topic: str, partitions: int) -> None:
        # No log: librdkafka would report on stderr that the broker is gone when the demo stops.
        self._admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call] # nor give it a type
        self._request = {TopicPartition(topic, number): latest for number in range(partitions)}

    def records(self) -> int:
        """Return the number of records that were ever written to the topic.

        Raises:
            KafkaException: Kafka is not available.
        """
        latest = time.monotonic() + ANSWER_SECONDS
        while True:
            futures = self._admin.list_offsets(self._request, request_timeout=ANSWER_SECONDS)
            try:
                return sum(future.result(ANSWER_SECONDS).offset for future in futures.values())
            except KafkaException as error:
                if error.args[0].code() not in _SOON_OVER or time.monotonic() > latest:
                    raise
            time.sleep(SECONDS_BETWEEN_ATTEMPTS)


def tree_bytes() -> int:
    """Return the resident bytes of this process and all its descendants; shared pages count for each process."""
    listing = subprocess.run(("ps", "-A", "-o", "pid=,ppid=,rss="), capture_output=True, text=True, check=True).stdout  # noqa: S607 # ps has another place on each system
    return resident_bytes(listing, os.getpid())


def resident_bytes(listing: str, root: int) -> int:
    """Return the resident bytes of the process `root` and its descendants, from lines of `pid ppid kibibytes`."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    resident: dict[int, int] = {}
    for line in listing.splitlines():
        pid, parent, kibibytes = (int(word) for word in line.split())
        children[parent].append(pid)
        resident[pid] = kibibytes * _KIB
    total, waiting = 0, [root]
    while waiting:
        pid = waiting.pop()
        total += resident.get(pid, 0)
        waiting += children[pid]
    return total


class RunClock:
    """Seconds since the start of a run, by the wall clock: times of other processes are compared with it."""

    def __init__(self) -> None:
        self.started_at = datetime.now(UTC)

    def now(self) -> float:
        """Return the seconds from the start until now."""
        return self.at(datetime.now(UTC))

    def at(self, moment: datetime) -> float:
        """Return the seconds from the start until a time."""
        return round((moment - self.started_at).total_seconds(), 3)


class RunProgress:
    """Counts records in Kafka by its end offsets, and committed records by the job's log.

    Args:
        taken_before: records that earlier runs committed.
        goal: records that this run is to commit.
    """

    def __init__(
        self, *, clock: RunClock, job_log: JobLog, topic_end: TopicEnd, store: Store, taken_before: int, goal: int
    ) -> None:
        self.batches: list[BatchLogLine] = []
        self.samples: list[RunSample] = []
        self._clock = clock
        self._job_log = job_log
        self._topic_end = topic_end
        self._store = store
        self._taken_before = taken_before
        self._goal = goal
        self._tables = 0
        self._moved = time.monotonic()
        self.sample()

    @property
    def lag(self) -> int:
        """Records that Kafka had at the last sample and that are not committed."""
        return self.samples[-1].produced - self._taken

    @property
    def stalled_for(self) -> timedelta:
        """The time in which no batch was committed although there were records."""
        return timedelta(seconds=time.monotonic() - self._moved)

    @property
    def _taken(self) -> int:
        return sum(batch.records for batch in self.batches)

    def poll(self) -> None:
        """Read the log, and take a sample if one is due."""
        new = self._job_log.new_batches()
        if new or self.lag == 0:
            self._moved = time.monotonic()
        self.batches += new
        if self._clock.now() - self.samples[-1].seconds >= SECONDS_BETWEEN_SAMPLES:
            self.sample()

    def sample(self) -> None:
        """Take a sample of records, batches and memory."""
        self._tables = sum(len(self._store.folders(layer)) for layer in _LAYERS)
        self.samples.append(
            RunSample(
                produced=self._topic_end.records() - self._taken_before,
                taken=self._taken,
                seconds=self._clock.now(),
                memory_bytes=tree_bytes(),
            )
        )

    def status(self) -> RunStatus:
        """Return the status to display."""
        taken, now = self._taken, self._clock.now()
        window = [sample for sample in self.samples if sample.seconds >= now - _RATE_WINDOW_SECONDS]
        oldest = window[0] if window else self.samples[-1]
        return RunStatus(
            seconds=now,
            goal=self._goal,
            produced=max(self.samples[-1].produced, taken),
            taken=taken,
            records_per_second=(taken - oldest.taken) / max(now - oldest.seconds, 1.0),
            tables=self._tables,
            dead_letters=sum(sum(batch.dead_letters.values()) for batch in self.batches),
            batches=len(self.batches),
        )
