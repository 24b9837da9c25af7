"""How long Kafka keeps the records of a topic, as Kafka itself says it."""

from concurrent.futures import TimeoutError as NoAnswerError
from datetime import timedelta

from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined] # the stubs do not export all of them
    AdminClient,
    ConfigResource,
    ResourceType,
)

from gamelake.errors import KafkaUnavailableError
from gamelake.kafka import KafkaAccess
from gamelake.maintenance.retentions import FOR_EVER

_ANSWER_SECONDS = 10.0
# Longer: librdkafka itself tells that an answer did not come in time, and says why.
_RESULT_SECONDS = 2 * _ANSWER_SECONDS


def topic_retention(kafka: KafkaAccess, topic: str) -> timedelta:
    """The topic's own `retention.ms`, or the broker's where it has none.

    Raises:
        KafkaUnavailableError: Kafka does not answer, refuses, or has no such topic.
    """
    # librdkafka prints a line for every attempt to connect.
    admin = AdminClient({**kafka.for_clients(), "log_level": 0})
    resource = ConfigResource(ResourceType.TOPIC, topic)
    try:
        (answer,) = admin.describe_configs([resource], request_timeout=_ANSWER_SECONDS).values()
        milliseconds = int(answer.result(_RESULT_SECONDS)["retention.ms"].value)
    except (KafkaException, NoAnswerError) as error:
        raise KafkaUnavailableError(
            f"Kafka does not tell how long it keeps '{topic}': {error}. The user needs the right to describe the "
            "topic's settings"
        ) from error
    return FOR_EVER if milliseconds < 0 else timedelta(milliseconds=milliseconds)
