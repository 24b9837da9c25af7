"""Where in the topic the event must be: the gateway says that Kafka has it, and keeps the coordinates to itself."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition
from obstore.exceptions import BaseError as ObjectStoreError

from gamelake.model.naming import DEAD_LETTERS
from gamelake.storage.appends import entry_path
from gamelake.storage.manifests import BatchManifest, Manifests
from gamelake.storage.store import Store
from tools.smoke.journey import NotYetError, Step, StepFailedError
from tools.smoke.settings import SmokeSettings

_ANSWER_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Span:
    """Offsets of one partition, both ends included."""

    partition: int
    first: int
    last: int

    def __str__(self) -> str:
        """For a person."""
        offsets = f"offset {self.first}" if self.first == self.last else f"offsets {self.first} to {self.last}"
        return f"partition {self.partition}, {offsets}"


class TopicEnds:
    """Asks Kafka how far the topic goes; reading nothing, it needs the right to describe the topic and no other."""

    def __init__(self, settings: SmokeSettings) -> None:
        self._topic = settings.topic
        client: dict[str, Any] = {**settings.kafka.for_clients(), "group.id": "smoke", "log_level": 0}
        self._consumer = Consumer(client)

    def now(self) -> dict[int, int]:
        """The offset that each partition's next record gets.

        Raises:
            NotYetError: Kafka does not answer.
        """
        try:
            topic = self._consumer.list_topics(self._topic, _ANSWER_SECONDS).topics[self._topic]
            return {partition: self._end(partition) for partition in topic.partitions}
        except KafkaException as error:
            raise NotYetError(f"Kafka does not answer ({error.args[0].name()})") from error

    def _end(self, partition: int) -> int:
        ends = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), _ANSWER_SECONDS)
        if ends is None:
            raise NotYetError(f"Kafka does not say how far partition {partition} goes")
        return int(ends[1])


def between(before: Mapping[int, int], after: Mapping[int, int]) -> tuple[Span, ...]:
    """What came in between two looks; on a stack where nobody else sends, one record.

    Raises:
        NotYetError: nothing did.
    """
    spans = tuple(
        Span(partition, before.get(partition, 0), end - 1)
        for partition, end in sorted(after.items())
        if end > before.get(partition, 0)
    )
    if not spans:
        raise NotYetError("no record has come into the topic")
    return spans


# Those that took the event and what came in beside it, in order: one, unless the topic is busy.
Batches = tuple[BatchManifest, ...]


class BatchFinder:
    """Looks through the manifests that are written after it was made."""

    def __init__(self, store: Store, stream: str) -> None:
        self._manifests = Manifests(store, stream)
        with _answers_expected():
            decided = self._manifests.batches()
        self._next = decided[-1] + 1 if decided else 0
        self._first = self._next
        self._found: list[BatchManifest] = []

    def find(self, spans: tuple[Span, ...]) -> Batches:
        """The batches that took all records of some spans.

        Raises:
            NotYetError: some of them are in no batch yet.
        """
        while (manifest := self._read(self._next)) is not None:
            self._next += 1
            if any(_holds(manifest, span) for span in spans):
                self._found.append(manifest)
            if all(_reaches(self._found, span) for span in spans):
                return tuple(self._found)
        seen = self._next - self._first
        raise NotYetError(f"no batch has taken the record ({seen} new batches looked at)")

    def _read(self, batch_id: int) -> BatchManifest | None:
        with _answers_expected():
            return self._manifests.read(batch_id)


def _holds(manifest: BatchManifest, span: Span) -> bool:
    return any(
        taken.partition == span.partition and taken.first <= span.last and span.first <= taken.last
        for taken in manifest.offsets
    )


def _reaches(found: list[BatchManifest], span: Span) -> bool:
    taken = (each for manifest in found for each in manifest.offsets)
    return any(each.partition == span.partition and each.last >= span.last for each in taken)


def check_tables(batches: Batches, table: str, spans: tuple[Span, ...]) -> None:
    """Do nothing when a batch has rows for the table.

    Raises:
        StepFailedError: none has, so that the record must be a dead letter.
    """
    if any(manifest.rows_in(table) for manifest in batches):
        return
    dead = sum(manifest.rows_in(DEAD_LETTERS) for manifest in batches)
    problem = f"batch {batches[-1].batch_id} has no rows for {table} and {dead} dead letters"
    raise StepFailedError(Step.COMMITTED, problem, dead_letter_question(spans))


def dead_letter_question(spans: tuple[Span, ...]) -> str:
    """The command that tells whether a record is a dead letter, and why."""
    # Nobody's input: a table's name and numbers of Kafka's.
    where = " OR ".join(
        f'partition = {span.partition} AND \\"offset\\" BETWEEN {span.first} AND {span.last}' for span in spans
    )
    statement = f"SELECT reason, detail FROM {DEAD_LETTERS.replace('/', '.')} WHERE {where}"  # noqa: S608 - see above
    return f'make sql USER_NAME=engineer Q="{statement}"'


class CommitFinder:
    """Looks for a batch's transaction in the logs of tables, from their newest entry on."""

    def __init__(self, store: Store, manifest: BatchManifest) -> None:
        self._store = store
        self._manifest = manifest
        self._next: dict[str, int] = {}

    def version(self, table: str) -> int:
        """The version of a table that the batch became.

        Raises:
            NotYetError: the table has not taken the batch yet.
        """
        with _answers_expected():
            if table not in self._next:
                self._next[table] = self._first_to_read(table)
            while (entry := self._store.get(entry_path(table, self._next[table]))) is not None:
                if self._is_of_batch(entry):
                    return self._next[table]
                self._next[table] += 1
        raise NotYetError(f"{table} has not taken batch {self._manifest.batch_id}")

    def _first_to_read(self, table: str) -> int:
        """The batch's own version if it is there, the one after the newest if it is not."""
        names = [path.rsplit("/", 1)[-1] for path in self._store.paths(f"{table}/_delta_log")]
        versions = [int(name[:20]) for name in names if name.endswith(".json") and name[:-5].isdigit()]
        for version in sorted(versions, reverse=True):
            entry = self._store.get(entry_path(table, version)) or b""
            if self._is_of_batch(entry):
                return version
            if self._is_older(entry):
                return version + 1
        return 0

    def _is_of_batch(self, entry: bytes) -> bool:
        return (self._manifest.app_id, self._manifest.batch_id) in _transactions(entry)

    def _is_older(self, entry: bytes) -> bool:
        """Whether an entry is of an earlier batch of the same stream: what comes before it needs no look."""
        earlier = range(self._manifest.batch_id)
        return any(app_id == self._manifest.app_id and batch in earlier for app_id, batch in _transactions(entry))


def _transactions(entry: bytes) -> list[tuple[str, int]]:
    actions = [json.loads(line) for line in entry.splitlines()]
    return [(action["txn"]["appId"], int(action["txn"]["version"])) for action in actions if "txn" in action]


@contextmanager
def _answers_expected() -> Iterator[None]:
    try:
        yield
    except ObjectStoreError as error:
        raise NotYetError(f"the object store does not answer ({type(error).__name__})") from error
