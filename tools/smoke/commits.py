"""From the event's place in the topic to the batches that have it, and to the table versions of these batches.

The gateway acknowledges an event without its partition and offset: the event is one of the records that the topic
gained meanwhile.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition
from obstore.exceptions import BaseError as ObjectStoreError

from gamelake.delta.log.codec import contents_of, decode_entry, entry_path, entry_versions
from gamelake.ledger.manifests import BatchManifest, Manifests
from gamelake.model.naming import DEAD_LETTERS
from gamelake.objects.store import Store
from tools.smoke.event_trace import NotYetError, Step, StepFailedError
from tools.smoke.settings import SmokeSettings

_ANSWER_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class TopicRange:
    """A range of offsets of one partition; both ends are included."""

    partition: int
    first: int
    last: int

    def __str__(self) -> str:
        """The range as printed."""
        offsets = f"offset {self.first}" if self.first == self.last else f"offsets {self.first} to {self.last}"
        return f"partition {self.partition}, {offsets}"


class TopicEnds:
    """Reads the topic's end offsets; it reads no records, and needs only the right to describe the topic."""

    def __init__(self, settings: SmokeSettings) -> None:
        self._topic = settings.topic
        client: dict[str, Any] = {**settings.kafka.for_clients(), "group.id": "smoke", "log_level": 0}
        self._consumer = Consumer(client)

    def now(self) -> dict[int, int]:
        """Return the offset that the next record of each partition gets.

        Raises:
            NotYetError: Kafka is not available.
        """
        try:
            topic = self._consumer.list_topics(self._topic, _ANSWER_SECONDS).topics[self._topic]
            return {partition: self._end(partition) for partition in topic.partitions}
        except KafkaException as error:
            raise NotYetError(f"Kafka is not available ({error.args[0].name()})") from error

    def _end(self, partition: int) -> int:
        ends = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), _ANSWER_SECONDS)
        if ends is None:
            raise NotYetError(f"Kafka returns no end offset of partition {partition}")
        return int(ends[1])


def between(before: Mapping[int, int], after: Mapping[int, int]) -> tuple[TopicRange, ...]:
    """Return the offsets written between two polls; one record if no other producer sends.

    Raises:
        NotYetError: no record was written.
    """
    ranges = tuple(
        TopicRange(partition, before.get(partition, 0), end - 1)
        for partition, end in sorted(after.items())
        if end > before.get(partition, 0)
    )
    if not ranges:
        raise NotYetError("no record was written to the topic")
    return ranges


# The batches with the event and with records that were written at the same time; one, unless the topic is busy.
Batches = tuple[BatchManifest, ...]


class BatchFinder:
    """Reads the manifests that are written after it was created."""

    def __init__(self, store: Store, stream: str) -> None:
        self._manifests = Manifests(store, stream)
        with _store_errors_as_not_yet():
            decided = self._manifests.batches()
        self._next = decided[-1] + 1 if decided else 0
        self._first = self._next
        self._found: list[BatchManifest] = []

    def find(self, ranges: tuple[TopicRange, ...]) -> Batches:
        """Find the batches that have all records of the ranges.

        Raises:
            NotYetError: some records are in no batch yet.
        """
        while (manifest := self._read(self._next)) is not None:
            self._next += 1
            if any(_holds(manifest, offsets) for offsets in ranges):
                self._found.append(manifest)
            if all(_reaches(self._found, offsets) for offsets in ranges):
                return tuple(self._found)
        seen = self._next - self._first
        raise NotYetError(f"no batch has the record ({seen} new batches read)")

    def _read(self, batch_id: int) -> BatchManifest | None:
        with _store_errors_as_not_yet():
            return self._manifests.read(batch_id)


def _holds(manifest: BatchManifest, offsets: TopicRange) -> bool:
    return any(
        taken.partition == offsets.partition and taken.first <= offsets.last and offsets.first <= taken.last
        for taken in manifest.offsets
    )


def _reaches(found: list[BatchManifest], offsets: TopicRange) -> bool:
    taken = (each for manifest in found for each in manifest.offsets)
    return any(each.partition == offsets.partition and each.last >= offsets.last for each in taken)


def check_tables(batches: Batches, table: str, ranges: tuple[TopicRange, ...]) -> None:
    """Check that a batch has rows for the table.

    Raises:
        StepFailedError: none has, so the record must be a dead letter.
    """
    if any(manifest.rows_in(table) for manifest in batches):
        return
    dead = sum(manifest.rows_in(DEAD_LETTERS) for manifest in batches)
    problem = f"batch {batches[-1].batch_id} has no rows for {table} and {dead} dead letters"
    raise StepFailedError(Step.COMMITTED, problem, dead_letter_query(ranges))


def dead_letter_query(ranges: tuple[TopicRange, ...]) -> str:
    """Return the command that shows whether a record is a dead letter, and why."""
    # No user input: a table's name, and numbers from Kafka.
    where = " OR ".join(
        f'partition = {offsets.partition} AND \\"offset\\" BETWEEN {offsets.first} AND {offsets.last}'
        for offsets in ranges
    )
    statement = f"SELECT reason, detail FROM {DEAD_LETTERS.replace('/', '.')} WHERE {where}"  # noqa: S608 - see above
    return f'make sql USER_NAME=engineer Q="{statement}"'


class CommitFinder:
    """Finds a batch's transaction in the logs of tables, starting at their newest entry."""

    def __init__(self, store: Store, manifest: BatchManifest) -> None:
        self._store = store
        self._manifest = manifest
        self._next: dict[str, int] = {}

    def version(self, table: str) -> int:
        """Return the version of a table that committed the batch.

        Raises:
            NotYetError: the batch is not committed to the table yet.
        """
        with _store_errors_as_not_yet():
            if table not in self._next:
                self._next[table] = self._first_to_read(table)
            while (entry := self._store.get(entry_path(table, self._next[table]))) is not None:
                if self._is_of_batch(entry):
                    return self._next[table]
                self._next[table] += 1
        raise NotYetError(f"batch {self._manifest.batch_id} is not committed to {table}")

    def _first_to_read(self, table: str) -> int:
        """The batch's version if it is committed, else the version after the newest one."""
        for version in reversed(entry_versions(self._store, table)):
            entry = self._store.get(entry_path(table, version)) or b""
            if self._is_of_batch(entry):
                return version
            if self._is_older(entry):
                return version + 1
        return 0

    def _is_of_batch(self, entry: bytes) -> bool:
        return (self._manifest.app_id, self._manifest.batch_id) in _transactions(entry)

    def _is_older(self, entry: bytes) -> bool:
        """Return True if an entry is of an earlier batch of the same stream; entries before it need not be read."""
        earlier = range(self._manifest.batch_id)
        return any(app_id == self._manifest.app_id and batch in earlier for app_id, batch in _transactions(entry))


def _transactions(entry: bytes) -> list[tuple[str, int]]:
    return [(each["appId"], int(each["version"])) for each in contents_of(decode_entry(entry), "txn")]


@contextmanager
def _store_errors_as_not_yet() -> Iterator[None]:
    try:
        yield
    except ObjectStoreError as error:
        raise NotYetError(f"the object store is not available ({type(error).__name__})") from error
