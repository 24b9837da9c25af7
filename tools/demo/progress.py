"""What is known of a run while it goes on: what Kafka has, what the job has taken, what memory it all takes."""

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

from gamelake.storage.store import Store
from tools.demo.figures import Sample
from tools.demo.screen import Status

_BATCH = re.compile(rb" gamelake\.[\w.]+ batch (\{.*\})$")


class BatchLine(msgspec.Struct, frozen=True, kw_only=True):
    """What the job says of a batch once all tables have it."""

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
        """Records that became no row of silver."""
        counted = (self.dead_letters, self.duplicates, self.quarantined, self.dropped)
        return sum(sum(each.values()) for each in counted)

    @property
    def seconds(self) -> float:
        """How long the batch took."""
        return self.decide_seconds + self.commit_seconds


def batch_of(line: bytes) -> BatchLine | None:
    """The batch that a line of the log tells of, None if it tells of something else.

    Raises:
        msgspec.ValidationError: the job and the demo do not agree on what is said of a batch.
    """
    found = _BATCH.search(line)
    return None if found is None else msgspec.json.decode(found[1], type=BatchLine)


class JobLog:
    """Follows the log from its present end.

    Args:
        path: the log, which need not be there yet.
        decided: batches that were decided before; the job tells of the last of them again when it finishes it.
    """

    def __init__(self, path: Path, decided: Collection[int]) -> None:
        self._path = path
        self._decided = frozenset(decided)
        self._position = path.stat().st_size if path.exists() else 0
        self._begun = b""

    def new_batches(self) -> list[BatchLine]:
        """The batches of which the log tells since the last call."""
        with self._path.open("rb") as log:
            log.seek(self._position)
            added = log.read()
        self._position += len(added)
        *lines, self._begun = (self._begun + added).split(b"\n")
        told = [batch for line in lines if (batch := batch_of(line)) is not None]
        return [batch for batch in told if batch.batch not in self._decided]


ANSWER_SECONDS = 15.0
SECONDS_BETWEEN_ATTEMPTS = 0.1
# A broker names itself as the leader of a new topic a moment before it is.
_SOON_OVER = frozenset({KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE})


class TopicEnd:
    """Asks Kafka for the ends of a topic's partitions."""

    def __init__(self, bootstrap_servers: str, topic: str, partitions: int) -> None:
        # Quiet: librdkafka would report the broker's end on stderr when the demo stops.
        self._admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call] # nor give it a type
        self._request = {TopicPartition(topic, number): latest for number in range(partitions)}

    def records(self) -> int:
        """Records that were ever written to the topic, whoever has read them.

        Raises:
            KafkaException: Kafka does not answer.
        """
        latest = time.monotonic() + ANSWER_SECONDS
        while True:
            answers = self._admin.list_offsets(self._request, request_timeout=ANSWER_SECONDS)
            try:
                return sum(answer.result(ANSWER_SECONDS).offset for answer in answers.values())
            except KafkaException as error:
                if error.args[0].code() not in _SOON_OVER or time.monotonic() > latest:
                    raise
            time.sleep(SECONDS_BETWEEN_ATTEMPTS)


_KIB = 1024


def tree_bytes() -> int:
    """Resident bytes of all processes below this one and of itself; what they share is counted for each of them."""
    listing = subprocess.run(("ps", "-A", "-o", "pid=,ppid=,rss="), capture_output=True, text=True, check=True).stdout  # noqa: S607 # ps has another place on each system
    return resident_bytes(listing, os.getpid())


def resident_bytes(listing: str, root: int) -> int:
    """Add up a tree of processes, given `pid ppid kibibytes` for each process of the machine."""
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


SECONDS_BETWEEN_SAMPLES = 1.0
_RATE_WINDOW_SECONDS = 8.0
_LAYERS = ("bronze/", "silver/", "dead_letters/", "quarantine/")


class RunClock:
    """Seconds since the start of a run, by the wall clock, because other processes' times are compared with it."""

    def __init__(self) -> None:
        self.started_at = datetime.now(UTC)

    def now(self) -> float:
        """Seconds until now."""
        return self.at(datetime.now(UTC))

    def at(self, moment: datetime) -> float:
        """Seconds until a moment."""
        return round((moment - self.started_at).total_seconds(), 3)


class Progress:
    """Counts from what was already taken: records of Kafka by its end offsets, taken ones by the job's log.

    Args:
        taken_before: records that earlier runs took.
        goal: records that are to be taken.
    """

    def __init__(
        self, *, clock: RunClock, job_log: JobLog, topic_end: TopicEnd, store: Store, taken_before: int, goal: int
    ) -> None:
        self.batches: list[BatchLine] = []
        self.samples: list[Sample] = []
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
        """Records that Kafka had at the last sample and the tables have not."""
        return self.samples[-1].produced - self._taken

    @property
    def stalled_for(self) -> timedelta:
        """How long nothing was taken."""
        return timedelta(seconds=time.monotonic() - self._moved)

    @property
    def _taken(self) -> int:
        return sum(batch.records for batch in self.batches)

    def look(self) -> None:
        """Read the log, and take a sample if the last one is old."""
        new = self._job_log.new_batches()
        if new or self.lag == 0:
            self._moved = time.monotonic()
        self.batches += new
        if self._clock.now() - self.samples[-1].seconds >= SECONDS_BETWEEN_SAMPLES:
            self.sample()

    def sample(self) -> None:
        """Note where the run is."""
        self._tables = sum(len(self._store.folders(layer)) for layer in _LAYERS)
        self.samples.append(
            Sample(
                produced=self._topic_end.records() - self._taken_before,
                taken=self._taken,
                seconds=self._clock.now(),
                memory_bytes=tree_bytes(),
            )
        )

    def status(self) -> Status:
        """What to show of it."""
        taken, now = self._taken, self._clock.now()
        window = [sample for sample in self.samples if sample.seconds >= now - _RATE_WINDOW_SECONDS]
        oldest = window[0] if window else self.samples[-1]
        return Status(
            seconds=now,
            goal=self._goal,
            produced=max(self.samples[-1].produced, taken),
            taken=taken,
            records_per_second=(taken - oldest.taken) / max(now - oldest.seconds, 1.0),
            tables=self._tables,
            dead_letters=sum(sum(batch.dead_letters.values()) for batch in self.batches),
            batches=len(self.batches),
        )
