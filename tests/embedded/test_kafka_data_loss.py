"""Errors of Spark's Kafka source are classified by Java class and condition, as Spark 4.2 really raises them."""

import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from py4j.protocol import Py4JJavaError
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from gamelake.kafka import KafkaAccess
from gamelake.model.errors import OffsetGapError
from gamelake.streaming.kafka_source import SourceTopic, offset_gap
from gamelake.streaming.runner import TriggerMode, run_until, start_writer
from tools.embedded import EmbeddedKafka
from tools.embedded.kafka import create_topic, delete_topic


class Topic:
    """A topic, and a query that reads it from one checkpoint."""

    def __init__(self, spark: SparkSession, servers: str, checkpoint: Path) -> None:
        self._spark = spark
        self._servers = servers
        self._checkpoint = checkpoint
        self.name = f"test-{uuid.uuid4().hex}"

    def create(self, partitions: int, records: int) -> None:
        """Create it, and send records to its partitions in turn."""
        create_topic(self._servers, self.name, partitions)
        producer = Producer({"bootstrap.servers": self._servers})
        for number in range(records):
            producer.produce(self.name, str(number).encode(), partition=number % partitions)
        assert producer.flush(30) == 0

    def delete(self) -> None:
        """Delete the topic."""
        delete_topic(self._servers, self.name)

    def delete_records(self, before: int) -> None:
        """Have Kafka delete the records of partition 0 before an offset, as retention would."""
        admin = AdminClient({"bootstrap.servers": self._servers})
        for answer in admin.delete_records([TopicPartition(self.name, 0, before)]).values():
            answer.result(30)

    def read(self, take: Callable[[DataFrame], object]) -> None:
        """Run the query to the topic's end."""
        failed = SimpleNamespace(failure=None)

        def body(records: DataFrame, _: int) -> None:
            try:
                take(records)
            except Py4JJavaError as error:
                failed.failure = offset_gap(error)
                raise

        records = SourceTopic(KafkaAccess(self._servers), self.name).records(self._spark, 1000)
        writer = records.writeStream.foreachBatch(body).option("checkpointLocation", str(self._checkpoint))
        batches: Any = failed
        run_until(Event(), start_writer(writer, TriggerMode.AVAILABLE_NOW, timedelta(0)), batches)


@pytest.fixture
def read_topic(spark: SparkSession, kafka: EmbeddedKafka, tmp_path: Path) -> Iterator[Topic]:
    """A topic that does not exist yet; it is deleted after the test."""
    found = Topic(spark, kafka.bootstrap_servers, tmp_path)
    yield found
    found.delete()


def as_tasks(records: DataFrame) -> int:
    """Read the records as a stream does: in Python, over Arrow; gives their number."""

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.select(["offset"])

    return len(records.mapInArrow(rows, "offset long").collect())


def test_records_that_are_deleted_before_a_task_reads_them_are_an_offset_gap(read_topic: Topic) -> None:
    read_topic.create(partitions=1, records=20)

    def take(records: DataFrame) -> None:
        read_topic.delete_records(before=15)
        as_tasks(records)

    with pytest.raises(OffsetGapError, match="--skip-lost"):
        read_topic.read(take)


def test_partitions_that_are_gone_when_a_batch_is_planned_are_an_offset_gap(read_topic: Topic) -> None:
    read_topic.create(partitions=2, records=20)
    read_topic.read(as_tasks)
    read_topic.delete()
    read_topic.create(partitions=1, records=20)

    with pytest.raises(OffsetGapError, match="--skip-lost"):
        read_topic.read(as_tasks)


def test_a_topic_that_has_lost_records_that_were_read_is_an_offset_gap(read_topic: Topic) -> None:
    read_topic.create(partitions=1, records=20)
    read_topic.read(as_tasks)
    # As after a power cut of a Kafka that does not sync.
    read_topic.delete()
    read_topic.create(partitions=1, records=10)

    with pytest.raises(OffsetGapError, match="--skip-lost"):
        read_topic.read(as_tasks)


def test_a_record_that_quotes_sparks_words_is_no_offset_gap(read_topic: Topic) -> None:
    read_topic.create(partitions=1, records=1)

    def take(records: DataFrame) -> None:
        records.selectExpr("raise_error('KAFKA_DATA_LOSS: some data may have been lost')").collect()

    with pytest.raises(StreamingQueryException, match="KAFKA_DATA_LOSS"):
        read_topic.read(take)
