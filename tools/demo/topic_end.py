"""How many records a topic has received."""

import time

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined] # the stubs do not export OffsetSpec
    AdminClient,
    OffsetSpec,
)

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
