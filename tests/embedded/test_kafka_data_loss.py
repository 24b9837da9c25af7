"""Records that Kafka has deleted before they were read stop the query with an error that names the remedy."""

import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from gamelake.kafka import KafkaAccess
from gamelake.model.errors import OffsetGapError
from gamelake.objects.store import Location, Store
from gamelake.streaming.driver.checkpoint import CheckpointFolder
from gamelake.streaming.driver.runner import TriggerMode, run_until, start_writer
from gamelake.streaming.kafka.source import SourceTopic
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
        delete_topic(self._servers, self.name)

    def delete_records(self, before: int) -> None:
        """Have Kafka delete the records of partition 0 before an offset, as retention would."""
        admin = AdminClient({"bootstrap.servers": self._servers})
        for answer in admin.delete_records([TopicPartition(self.name, 0, before)]).values():
            answer.result(30)

    def read(self, meanwhile: Callable[[DataFrame], object] = lambda _: None) -> int:
        """Run the query to the topic's end. Return the number of records that its batches have read.

        Args:
            meanwhile: called with the rows of Spark's source once a batch is planned, before its records are read.
        """
        topic = SourceTopic(KafkaAccess(self._servers), self.name)
        folder = CheckpointFolder(Store(Location(uri=self._checkpoint.as_uri())), "checkpoint", self.name)
        outcome = SimpleNamespace(failure=None, records=0)

        def body(planning: DataFrame, batch_id: int) -> None:
            records = topic.batch(planning, folder.planned(batch_id))
            meanwhile(planning)
            try:
                outcome.records += len(records.read())
            except OffsetGapError as error:
                outcome.failure = error
                raise

        writer = topic.stream(self._spark, 1000).writeStream.foreachBatch(body)
        query = start_writer(
            writer.option("checkpointLocation", str(self._checkpoint / "checkpoint")),
            TriggerMode.AVAILABLE_NOW,
            timedelta(0),
        )
        batches: Any = outcome
        run_until(Event(), query, batches)
        return int(outcome.records)


@pytest.fixture
def read_topic(spark: SparkSession, kafka: EmbeddedKafka, tmp_path: Path) -> Iterator[Topic]:
    """A topic that does not exist yet; it is deleted after the test."""
    found = Topic(spark, kafka.bootstrap_servers, tmp_path)
    yield found
    found.delete()


def test_records_that_are_deleted_before_a_task_reads_them_are_an_offset_gap(read_topic: Topic) -> None:
    read_topic.create(partitions=1, records=20)

    with pytest.raises(OffsetGapError, match="--skip-lost"):
        read_topic.read(lambda _: read_topic.delete_records(before=15))


def test_partitions_that_are_gone_when_a_batch_is_planned_are_an_offset_gap(read_topic: Topic) -> None:
    read_topic.create(partitions=2, records=20)
    read_topic.read()
    read_topic.delete()
    read_topic.create(partitions=1, records=20)

    with pytest.raises(OffsetGapError, match="--skip-lost"):
        read_topic.read()


def test_a_topic_that_has_lost_records_that_were_read_is_an_offset_gap(read_topic: Topic) -> None:
    read_topic.create(partitions=1, records=20)
    read_topic.read()
    # As after a power cut of a Kafka that does not sync.
    read_topic.delete()
    read_topic.create(partitions=1, records=10)

    with pytest.raises(OffsetGapError, match="--skip-lost"):
        read_topic.read()


def test_a_record_that_quotes_sparks_words_is_no_offset_gap(read_topic: Topic) -> None:
    read_topic.create(partitions=1, records=1)

    def take(planning: DataFrame) -> None:
        planning.selectExpr("raise_error('KAFKA_DATA_LOSS: some data may have been lost')").collect()

    with pytest.raises(StreamingQueryException, match="KAFKA_DATA_LOSS"):
        read_topic.read(take)


def test_records_that_kafka_deleted_before_the_first_start_are_no_gap(read_topic: Topic) -> None:
    read_topic.create(partitions=2, records=20)
    read_topic.delete_records(before=4)

    assert read_topic.read() == 16
