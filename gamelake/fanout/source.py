"""The Kafka topic that a stream reads."""

import time
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined] # the stubs lack it
from pyspark.sql import DataFrame, SparkSession

from gamelake.bronze.headers import HEADERS_AS_JSON
from gamelake.errors import GamelakeError, KafkaUnavailableError, StartupError
from gamelake.kafka import KafkaAccess

_ANSWER_SECONDS = 15.0
# Longer: librdkafka itself tells that an answer did not come in time, and says why.
_RESULT_SECONDS = 2 * _ANSWER_SECONDS
_REFUSAL_SECONDS = 3.0
_AWAY = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001 # librdkafka's own codes begin with an underscore
        KafkaError._RESOLVE,  # noqa: SLF001
        KafkaError._TIMED_OUT,  # noqa: SLF001
        KafkaError._TRANSPORT,  # noqa: SLF001
    }
)


class Topic:
    """A topic and the way to ask who it is."""

    def __init__(self, kafka: KafkaAccess, name: str) -> None:
        self._kafka = kafka
        self._name = name
        # Quiet: librdkafka would report each lost connection on stderr, and the query reports what matters.
        self._admin = AdminClient({**kafka.for_clients(), "log_level": 0})

    def id(self) -> str:
        """The id that Kafka gave the topic when it was made: another one after it was deleted and made again.

        Raises:
            KafkaUnavailableError: Kafka does not answer.
            StartupError: the topic is not there, or not for us.
        """
        answer = self._admin.describe_topics(TopicCollection([self._name]), request_timeout=_ANSWER_SECONDS)
        try:
            return str(answer[self._name].result(_RESULT_SECONDS).topic_id)
        except KafkaException as error:
            raise self._unreadable(error) from error

    def earliest_offsets(self) -> dict[int, int]:
        """The first offset that Kafka still holds of each partition.

        Raises:
            KafkaUnavailableError: Kafka does not answer.
            StartupError: the topic is not there, or not for us.
        """
        description = self._admin.describe_topics(TopicCollection([self._name]), request_timeout=_ANSWER_SECONDS)
        try:
            partitions = [found.id for found in description[self._name].result(_RESULT_SECONDS).partitions]
            earliest = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
            request = {TopicPartition(self._name, partition): earliest for partition in partitions}
            answers = self._admin.list_offsets(request, request_timeout=_ANSWER_SECONDS)
            return {place.partition: answer.result(_RESULT_SECONDS).offset for place, answer in answers.items()}
        except KafkaException as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: KafkaException) -> GamelakeError:
        kafka_error: KafkaError = error.args[0]
        where = f"the topic '{self._name}' at {self._kafka.bootstrap_servers}"
        if kafka_error.code() in _AWAY and _refuses(self._kafka):
            return StartupError(f"{where} can't be read: Kafka refuses the user name or the password")
        if kafka_error.code() in _AWAY or kafka_error.retriable():
            return KafkaUnavailableError(f"{where} does not answer: {kafka_error.str()}")
        return StartupError(f"{where} can't be read: {kafka_error.str()}")

    def records(self, spark: SparkSession, max_offsets_per_trigger: int) -> DataFrame:
        """The topic's records as a stream from its beginning, in the columns that tasks take."""
        options = {
            **self._kafka.for_spark(),
            "subscribe": self._name,
            "startingOffsets": "earliest",
            "failOnDataLoss": "true",
            "includeHeaders": "true",
            "kafka.isolation.level": "read_committed",
            "maxOffsetsPerTrigger": str(max_offsets_per_trigger),
            # No minPartitions and no maxRecordsPerPartition: a Kafka partition is never split between two tasks, which
            # is what duplicates are found by.
            # A fetch at the end of a partition waits so long for more; the default of 500 ms, once per partition that
            # a task reads, was most of a small batch's time.
            "kafka.fetch.max.wait.ms": "50",
        }
        stream = spark.readStream.format("kafka").options(**options).load()
        return stream.selectExpr("key", "value", "partition", "offset", "timestamp", f"{HEADERS_AS_JSON} AS headers")


def _refuses(kafka: KafkaAccess) -> bool:
    """Whether it is for our credentials that Kafka gives no answer: a request only times out, whatever the reason."""
    codes: set[int] = set()
    # A client of its own: one that lives long and is not polled would gather an error for each attempt to connect.
    settings: dict[str, Any] = {**kafka.for_clients(), "log_level": 0}
    client = AdminClient(settings | {"error_cb": lambda error: codes.add(error.code())})
    latest = time.monotonic() + _REFUSAL_SECONDS
    while not codes and time.monotonic() < latest:
        client.poll(_REFUSAL_SECONDS / 10)
    return KafkaError._AUTHENTICATION in codes  # noqa: SLF001
