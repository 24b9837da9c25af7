"""A program without Spark that consumes a topic into one Delta table, exactly once; what appends rows is given to it.

Each append also commits, as one Delta transaction for each Kafka partition, the offset up to which the table has the
partition. A restarted program continues from there, so no record is lost or appended twice.
Source: Delta Transaction Log Protocol, heading "Transaction Identifiers".
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, TopicPartition
from deltalake import CommitProperties, DeltaTable, Transaction

from benchmarks.decoding import event_columns, event_rows, process_decoder
from benchmarks.stopwatch import Stopwatch
from benchmarks.traffic import PARTITIONS
from benchmarks.workload import ONE_TABLE, ApproachResult, RecordsMissingError, Workload, check_records, location_of
from gamelake.layers.silver import EVENT_DATE

# As many as the fan-out decodes at once: what comes of them stays in the processor's cache.
_RECORDS_AT_ONCE = 20_000
# Few enough that Python's garbage collection does not visit each message several times.
_MESSAGES_AT_ONCE = 500
_SILENCE_SECONDS = 10.0
_CONSUMER = {
    "group.id": "benchmark",
    "enable.auto.commit": False,
    "fetch.max.bytes": 64 * 2**20,
    "max.partition.fetch.bytes": 16 * 2**20,
    # As the fan-out. By default librdkafka waits 0.5 s at a partition's end, and 1 s when its queue is full.
    "fetch.wait.max.ms": 5,
    "fetch.queue.backoff.ms": 5,
}


@dataclass(frozen=True, slots=True)
class EventRows:
    """Rows to append in one commit.

    Attributes:
        rows: in the columns of `event_columns`.
        topic: that they came from.
        next_offsets: by partition, the offset after the last record that is in `rows` or was appended before.
    """

    rows: pa.Table
    topic: str
    next_offsets: Mapping[int, int]

    @property
    def commit_properties(self) -> CommitProperties:
        """The transactions to commit with the rows."""
        return CommitProperties(
            app_transactions=[
                Transaction(_application(self.topic, partition), offset)
                for partition, offset in self.next_offsets.items()
            ]
        )


Append: TypeAlias = Callable[[DeltaTable, EventRows], None]


def consume_into_one_table(workload: Workload, append: Append, rows_per_append: int = 250_000) -> ApproachResult:
    """Consume the topic up to its present end; the next rows are read while a thread appends the last ones.

    Args:
        workload: the topic.
        append: appends rows to the table in one commit, with the commit properties of the rows.
        rows_per_append: from how many rows on they are appended.

    Raises:
        RecordsMissingError: Kafka sent no record for ten seconds, or the table lacks some.
    """
    columns = event_columns()
    watch = Stopwatch.start(workload.kafka_pid)
    table = DeltaTable.create(location_of(workload).child(ONE_TABLE), columns, mode="ignore", partition_by=[EVENT_DATE])
    with ThreadPoolExecutor(1) as appender:
        running: Future[None] | None = None
        for rows in _event_rows(workload, columns, stored_offsets(table, workload.topic), rows_per_append):
            if running is not None:
                running.result()
            running = appender.submit(append, table, rows)
        if running is not None:
            running.result()
    lap = watch.stop()
    files = pa.table(DeltaTable(table.table_uri).get_add_actions())
    check_records("a consumer into one table", sum(files["num_records"].to_pylist()), workload.records)
    return ApproachResult(
        records=workload.records, lap=lap, files=len(files), game_table_bytes=sum(files["size_bytes"].to_pylist())
    )


def stored_offsets(table: DeltaTable, topic: str) -> dict[int, int]:
    """Return the offset to continue from, by partition, for each partition that the table has rows of."""
    stored = {number: table.transaction_version(_application(topic, number)) for number in range(PARTITIONS)}
    return {number: offset for number, offset in stored.items() if offset is not None}


def _application(topic: str, partition: int) -> str:
    return f"{topic}-{partition}"


def _event_rows(
    workload: Workload, columns: pa.Schema, begin: Mapping[int, int], rows_per_append: int
) -> Iterator[EventRows]:
    decoder = process_decoder(workload.registry_url, location_of(workload))
    next_offsets, batches = dict(begin), list[pa.RecordBatch]()
    for records in _record_batches(workload, begin):
        batches += [event_rows(records, group, columns) for group in decoder.decode(records.column("value")).groups]
        next_offsets |= _next_offsets(records)
        if sum(map(len, batches)) >= rows_per_append:
            yield EventRows(pa.Table.from_batches(batches, columns), workload.topic, dict(next_offsets))
            batches = []
    if batches:
        yield EventRows(pa.Table.from_batches(batches, columns), workload.topic, next_offsets)


def _next_offsets(records: pa.RecordBatch) -> dict[int, int]:
    partitions, offsets = records.column("partition").to_numpy(), records.column("offset").to_numpy()
    return {int(number): int(offsets[partitions == number].max()) + 1 for number in np.unique(partitions)}


def _record_batches(workload: Workload, begin: Mapping[int, int]) -> Iterator[pa.RecordBatch]:
    """The topic's records up to its present end, in the columns value, partition and offset."""
    consumer = Consumer({"bootstrap.servers": workload.bootstrap_servers, **_CONSUMER})
    starts = [
        TopicPartition(workload.topic, number, begin.get(number, OFFSET_BEGINNING)) for number in range(PARTITIONS)
    ]
    try:
        left = sum(map(partial(_left, consumer), starts))
        consumer.assign(starts)
        while left:
            messages = _messages(consumer, min(left, _RECORDS_AT_ONCE))
            left -= len(messages)
            yield _as_records(messages)
    finally:
        consumer.close()


def _messages(consumer: Consumer, count: int) -> list[Message]:
    messages = list[Message]()
    while len(messages) < count:
        found = consumer.consume(min(_MESSAGES_AT_ONCE, count - len(messages)), _SILENCE_SECONDS)
        if not found:
            raise RecordsMissingError(f"Kafka sent no record for {_SILENCE_SECONDS:g} s")
        messages += found
    return messages


def _left(consumer: Consumer, start: TopicPartition) -> int:
    first, end = consumer.get_watermark_offsets(start)
    return int(end - max(first, start.offset))


def _as_records(messages: list[Message]) -> pa.RecordBatch:
    for message in messages:
        if (error := message.error()) is not None:
            raise KafkaException(error)
    return pa.RecordBatch.from_pydict(
        {
            "value": pa.array([message.value() for message in messages], pa.binary()),
            "partition": pa.array([message.partition() for message in messages], pa.int32()),
            "offset": pa.array([message.offset() for message in messages], pa.int64()),
        }
    )
