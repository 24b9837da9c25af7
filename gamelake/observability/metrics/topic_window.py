"""Kafka's view of a topic: how far it reaches, and when it received a record."""

import time
from collections.abc import Mapping

from confluent_kafka import Consumer, IsolationLevel, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined] # the stubs lack it

from gamelake.kafka import KafkaAccess
from gamelake.observability.metrics.lag import OffsetSpan, Oldest

_ANSWER_SECONDS = 10.0
# Longer than librdkafka's own time-out, whose error says why.
_RESULT_SECONDS = 2 * _ANSWER_SECONDS
_RECORD_SECONDS = 2.0
_CONSUMER = {
    # librdkafka wants a group and asks for its coordinator, though it never joins one. Spark's users may read groups
    # that begin so, where Kafka has such rules.
    "group.id": "spark-kafka-gamelake-lag",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    # Retention may pass the offset while we ask for it.
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    # We need one record of each partition; Kafka sends a producer's batch at least.
    "queued.min.messages": 1,
    "fetch.message.max.bytes": 100_000,
    "fetch.wait.max.ms": 50,
    "fetch.queue.backoff.ms": 10,
    "log_level": 0,
}


class TopicWindow:
    """Reads the offsets of one topic from Kafka, independently of its consumers; for one thread."""

    def __init__(self, kafka: KafkaAccess, topic: str) -> None:
        self._topic = topic
        self._admin = AdminClient({**kafka.for_clients(), "log_level": 0})
        self._consumer = Consumer({**kafka.for_clients(), **_CONSUMER})

    def topic_id(self) -> str:
        """Return the id that Kafka gave the topic when it was made.

        Raises:
            KafkaException: Kafka does not result, or refuses.
        """
        result = self._admin.describe_topics(TopicCollection([self._topic]), request_timeout=_ANSWER_SECONDS)
        return str(result[self._topic].result(_RESULT_SECONDS).topic_id)

    def spans(self) -> dict[int, OffsetSpan]:
        """Return the offsets that Kafka holds of each partition, to the end of the committed transactions.

        Raises:
            KafkaException: Kafka does not result, or refuses.
        """
        result = self._admin.describe_topics(TopicCollection([self._topic]), request_timeout=_ANSWER_SECONDS)
        partitions = [found.id for found in result[self._topic].result(_RESULT_SECONDS).partitions]
        earliest = self._offsets(partitions, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
        ends = self._offsets(partitions, OffsetSpec.latest())  # type: ignore[no-untyped-call]
        return {each: OffsetSpan(earliest[each], ends[each]) for each in partitions}

    def _offsets(self, partitions: list[int], which: OffsetSpec) -> dict[int, int]:
        request = {TopicPartition(self._topic, partition): which for partition in partitions}
        results = self._admin.list_offsets(
            request, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=_ANSWER_SECONDS
        )
        return {place.partition: result.result(_RESULT_SECONDS).offset for place, result in results.items()}

    def oldest(self, starts: dict[int, int]) -> dict[int, Oldest]:
        """Return the first record of each partition from an offset on, without those that did not come in time."""
        found: dict[int, Oldest] = {}
        if not starts:
            return found
        self._consumer.incremental_assign(
            [TopicPartition(self._topic, each, offset) for each, offset in starts.items()]
        )
        latest = time.monotonic() + _RECORD_SECONDS
        while len(found) < len(starts) and time.monotonic() < latest:
            message = self._consumer.poll(_RECORD_SECONDS / 10)
            # Errors do not matter here: a user without a right to groups may read the topic.
            if message is not None and message.error() is None:
                self._take(message.partition(), message.timestamp()[1], starts, found)
        missing = [TopicPartition(self._topic, each) for each in starts.keys() - found.keys()]
        if missing:
            self._consumer.incremental_unassign(missing)
        return found

    def _take(
        self, partition: int | None, milliseconds: int, starts: Mapping[int, int], found: dict[int, Oldest]
    ) -> None:
        if partition is not None and partition in starts.keys() - found.keys() and milliseconds > 0:
            found[partition] = Oldest(starts[partition], milliseconds / 1000)
            self._consumer.incremental_unassign([TopicPartition(self._topic, partition)])

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()
