"""The Kafka topic that a stream reads."""

from confluent_kafka import KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined] # the stubs lack it
from pyspark.sql import DataFrame, SparkSession

from gamelake.bronze.headers import HEADERS_AS_JSON
from gamelake.errors import StartupError

_ANSWER_SECONDS = 15.0


class Topic:
    """A topic and the way to ask who it is."""

    def __init__(self, bootstrap_servers: str, name: str) -> None:
        self._servers = bootstrap_servers
        self._name = name
        # Quiet: librdkafka would report each lost connection on stderr, and the query reports what matters.
        self._admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})

    def id(self) -> str:
        """The id that Kafka gave the topic when it was made: another one after it was deleted and made again.

        Raises:
            StartupError: Kafka or the topic is not there.
        """
        answer = self._admin.describe_topics(TopicCollection([self._name]), request_timeout=_ANSWER_SECONDS)
        try:
            return str(answer[self._name].result(_ANSWER_SECONDS).topic_id)
        except KafkaException as error:
            raise self._unreadable(error) from error

    def earliest_offsets(self) -> dict[int, int]:
        """The first offset that Kafka still holds of each partition.

        Raises:
            StartupError: Kafka or the topic is not there.
        """
        description = self._admin.describe_topics(TopicCollection([self._name]), request_timeout=_ANSWER_SECONDS)
        try:
            partitions = [found.id for found in description[self._name].result(_ANSWER_SECONDS).partitions]
            earliest = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
            request = {TopicPartition(self._name, partition): earliest for partition in partitions}
            answers = self._admin.list_offsets(request, request_timeout=_ANSWER_SECONDS)
            return {place.partition: answer.result(_ANSWER_SECONDS).offset for place, answer in answers.items()}
        except KafkaException as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: KafkaException) -> StartupError:
        reason = error.args[0].str()
        return StartupError(f"the topic '{self._name}' at {self._servers} can't be read: {reason}")

    def records(self, spark: SparkSession, max_offsets_per_trigger: int) -> DataFrame:
        """The topic's records as a stream from its beginning, in the columns that tasks take."""
        options = {
            "kafka.bootstrap.servers": self._servers,
            "subscribe": self._name,
            "startingOffsets": "earliest",
            "failOnDataLoss": "true",
            "includeHeaders": "true",
            "kafka.isolation.level": "read_committed",
            "maxOffsetsPerTrigger": str(max_offsets_per_trigger),
            # A fetch at the end of a partition waits so long for more; the default of 500 ms, once per partition that
            # a task reads, was most of a small batch's time.
            "kafka.fetch.max.wait.ms": "50",
        }
        stream = spark.readStream.format("kafka").options(**options).load()
        return stream.selectExpr("key", "value", "partition", "offset", "timestamp", f"{HEADERS_AS_JSON} AS headers")
