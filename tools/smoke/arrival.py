"""Where in the topic the event must be: the gateway says that Kafka has it, and keeps the coordinates to itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tools.smoke.errors import NotYetError
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
