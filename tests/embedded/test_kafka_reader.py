"""Offset ranges of a topic are read into Arrow as Spark's own source reads them, whatever is in the topic."""

import ctypes
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn, Protocol, TypeAlias

import confluent_kafka
import pyarrow as pa
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic  # the stubs of `admin` do not export it
from pyspark.sql import SparkSession

from gamelake.kafka import KafkaAccess
from gamelake.layers.bronze import HEADERS, RECORD_SCHEMA
from gamelake.streaming.kafka.consumers import (
    NativeConsumer,
    PartitionRange,
    PythonConsumer,
    RangeConsumer,
    Settings,
    has_native_consumer,
)
from gamelake.streaming.kafka.reader import FailureKind, RangeReader, ReadError
from tests.embedded.kafka_proxy import KafkaProxy
from tests.support.eventually import eventually
from tools.embedded import EmbeddedKafka
from tools.embedded.kafka import create_topic
from tools.embedded.ports import HOST, free_port
from tools.embedded.process import ServiceMissingError

MIB = 2**20
_ANY_TIME = {"message.timestamp.after.max.ms": str(2**63 - 1), "retention.ms": "-1"}


class MakeTopic(Protocol):
    """Makes a topic; see the fixture `topic`."""

    def __call__(self, partitions: int, config: Mapping[str, str] = ..., /) -> str:
        """Give its name."""


def producer(kafka: EmbeddedKafka, **settings: object) -> Producer:
    """A producer that accepts values of 5 MiB."""
    return Producer({"bootstrap.servers": kafka.bootstrap_servers, "message.max.bytes": 16 * MIB, **settings})


def send(kafka: EmbeddedKafka, topic: str, values: Sequence[bytes], partition: int = 0) -> None:
    """Send values, and wait until Kafka has them."""
    sender = producer(kafka)
    for value in values:
        sender.produce(topic, value, partition=partition)
    assert sender.flush(60) == 0


def send_with_headers(kafka: EmbeddedKafka, topic: str, headers: Sequence[Sequence[tuple[bytes, bytes]]]) -> None:
    """Send empty records with headers whose names may be any bytes, which no Python client sends, by librdkafka itself.

    Source: librdkafka, `rdkafka.h`: `rd_kafka_producev` and `rd_kafka_vtype_t`.
    """
    (library,) = (Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs").glob("librdkafka*")
    librdkafka = ctypes.CDLL(str(library))
    for function in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_headers_new"):
        getattr(librdkafka, function).restype = ctypes.c_void_p
    settings, error = ctypes.c_void_p(librdkafka.rd_kafka_conf_new()), ctypes.create_string_buffer(512)
    servers = kafka.bootstrap_servers.encode()
    assert librdkafka.rd_kafka_conf_set(settings, b"bootstrap.servers", servers, error, len(error)) == 0
    handle = ctypes.c_void_p(librdkafka.rd_kafka_new(0, settings, error, len(error)))
    end, of_topic, of_partition, of_headers = map(ctypes.c_int, (0, 1, 3, 10))
    for pairs in headers:
        given = ctypes.c_void_p(librdkafka.rd_kafka_headers_new(len(pairs)))
        for name, value in pairs:
            size, length = ctypes.c_ssize_t(len(name)), ctypes.c_ssize_t(len(value))
            assert librdkafka.rd_kafka_header_add(given, name, size, value, length) == 0
        place = of_topic, ctypes.c_char_p(topic.encode()), of_partition, ctypes.c_int32(0)
        assert librdkafka.rd_kafka_producev(handle, *place, of_headers, given, end) == 0
    assert librdkafka.rd_kafka_flush(handle, 60_000) == 0
    librdkafka.rd_kafka_destroy(handle)


ReaderOf: TypeAlias = Callable[..., RangeReader]


@pytest.fixture(params=[NativeConsumer, PythonConsumer])
def reader_of(request: pytest.FixtureRequest, missing_service: Callable[[str], NoReturn]) -> ReaderOf:
    """Makes readers of a topic, with either consumer."""
    consumer: Callable[[Settings, str], RangeConsumer] = request.param
    if consumer is NativeConsumer and not has_native_consumer():
        missing_service("gamelake_native is not built: make setup builds it where cargo is installed")

    def make(kafka: EmbeddedKafka, topic: str, patience: float = 60.0) -> RangeReader:
        return RangeReader(KafkaAccess(kafka.bootstrap_servers), topic, patience, consumer)

    return make


def read(reader: RangeReader, *ranges: PartitionRange) -> pa.Table:
    return pa.Table.from_batches(list(reader.read(ranges)), RECORD_SCHEMA)


def offsets(reader: RangeReader, start: int, end: int) -> list[int]:
    """The offsets of the records of a range of partition 0."""
    found: list[int] = read(reader, PartitionRange(0, start, end))["offset"].to_pylist()
    return found


def as_spark_reads(spark: SparkSession, kafka: EmbeddedKafka, topic: str) -> pa.Table:
    """The committed records of a topic by Spark's source, in the reader's columns and order."""
    options = {
        "kafka.bootstrap.servers": kafka.bootstrap_servers,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "includeHeaders": "true",
        "kafka.isolation.level": "read_committed",
    }
    frame = spark.read.format("kafka").options(**options).load()
    found = frame.select(*RECORD_SCHEMA.names).toArrow()
    columns = [
        # Spark names the elements of lists, and some fields can't be null.
        pa.chunked_array([pa.array(found[each.name].to_pylist(), HEADERS)])
        if each.name == "headers"
        else found[each.name].cast(each.type)
        for each in RECORD_SCHEMA
    ]
    return pa.Table.from_arrays(columns, schema=RECORD_SCHEMA).sort_by(
        [("partition", "ascending"), ("offset", "ascending")]
    )


def in_order(records: pa.Table) -> pa.Table:
    return records.sort_by([("partition", "ascending"), ("offset", "ascending")])


def test_keys_values_headers_and_times_are_as_spark_reads_them(
    spark: SparkSession, kafka: EmbeddedKafka, topic: MakeTopic, reader_of: ReaderOf
) -> None:
    # Kafka deletes records of such timestamps by its usual retention, which it checks every five minutes.
    name, sender = topic(3, {"retention.ms": "-1"}), producer(kafka)
    headers: list[list[tuple[str, str | bytes | None]] | None] = [
        None,
        [],
        [("trace", b"\x00\xff\x80"), ("trace", b"again"), ("none", None), ("", b"")],
        [("ключ", "値".encode())],
    ]
    values = [b"", None, b"\x00" * 3, b"value"]
    keys = [None, b"", b"\xff\x00", b"key"]
    for number, (value, key, each) in enumerate(itertools.product(values, keys, headers)):
        sender.produce(name, value, key, partition=number % 3, timestamp=1_700_000_000_000 + number, headers=each)
    assert sender.flush(60) == 0

    found = read(reader_of(kafka, name), *(PartitionRange(each, 0, end) for each, end in enumerate((22, 21, 21))))

    assert len(found) == 64
    assert in_order(found).equals(as_spark_reads(spark, kafka, name))


def test_a_timestamp_that_no_calendar_has_becomes_the_time_of_reading(
    kafka: EmbeddedKafka, topic: MakeTopic, reader_of: ReaderOf
) -> None:
    name, sender, began = topic(1, _ANY_TIME), producer(kafka), time.time()
    sent = [1_700_000_000_000, 1_700_000_000_000_000, 2**63 - 1, 253_402_300_799_999]
    for moment in sent:
        sender.produce(name, b"value", partition=0, timestamp=moment)
    assert sender.flush(60) == 0

    found = read(reader_of(kafka, name), PartitionRange(0, 0, 4))["timestamp"].cast(pa.int64()).to_pylist()

    assert [found[0], found[3]] == [sent[0] * 1000, sent[3] * 1000]
    assert all(began <= each / 1_000_000 + 1 <= time.time() + 2 for each in found[1:3])


def test_header_names_that_are_not_utf_8_cost_no_record(
    kafka: EmbeddedKafka, topic: MakeTopic, reader_of: ReaderOf
) -> None:
    name = topic(1)
    headers = [[(b"trace", b"1")], [(b"\xff\xfe", b"2")], [(b"trace", b"3"), (b"trace", b"4")], []]
    send_with_headers(kafka, name, headers)

    reader = reader_of(kafka, name)
    found = read(reader, PartitionRange(0, 0, 4))["headers"].to_pylist()

    names = {"key": "\ufffd\ufffd", "value": b"2"}, {"key": "\ufffd", "value": None}
    assert found == [
        [{"key": "trace", "value": b"1"}],
        [names[isinstance(reader.consumer, PythonConsumer)]],
        [{"key": "trace", "value": b"3"}, {"key": "trace", "value": b"4"}],
        None,
    ]


def test_a_range_ends_before_what_was_sent_later(kafka: EmbeddedKafka, topic: MakeTopic, reader_of: ReaderOf) -> None:
    name = topic(1)
    send(kafka, name, [b"%d" % number for number in range(1000)])
    reader = reader_of(kafka, name)

    assert offsets(reader, 10, 20) == list(range(10, 20))
    # A task that is run again, and the next batch.
    assert offsets(reader, 10, 20) == list(range(10, 20))
    assert offsets(reader, 20, 1000) == list(range(20, 1000))
    assert offsets(reader, 7, 7) == []


def test_aborted_transactions_and_their_markers_are_left_out(
    spark: SparkSession, kafka: EmbeddedKafka, topic: MakeTopic, reader_of: ReaderOf
) -> None:
    name, sender = topic(1), producer(kafka, **{"transactional.id": "test-reader"})
    sender.init_transactions(60)
    for number, commits in enumerate((True, False, True, False)):
        sender.begin_transaction()
        for each in range(3):
            sender.produce(name, f"{number}-{each}".encode(), partition=0)
        sender.flush(60)
        (sender.commit_transaction if commits else sender.abort_transaction)(60)
    # Three records and a marker for each; the last four offsets hold no record.
    reader = reader_of(kafka, name)

    assert offsets(reader, 0, 16) == [0, 1, 2, 8, 9, 10]
    assert in_order(read(reader, PartitionRange(0, 0, 16))).equals(as_spark_reads(spark, kafka, name))
    assert offsets(reader, 3, 8) == []
    assert offsets(reader, 12, 16) == []


def test_offsets_that_compaction_has_removed_are_left_out(
    kafka: EmbeddedKafka, topic: MakeTopic, reader_of: ReaderOf
) -> None:
    name = topic(1, {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"})
    sender = producer(kafka)
    for number in range(100):
        sender.produce(name, b"%d" % number, b"same key", partition=0)
    assert sender.flush(60) == 0
    reader = reader_of(kafka, name)

    def is_compacted() -> bool:
        # A new record closes the segment before it.
        sender.produce(name, b"next", b"another key", partition=0)
        assert sender.flush(60) == 0
        return len(offsets(reader, 0, 100)) < 100

    eventually(is_compacted, timeout=120)
    assert offsets(reader, 0, 100) == [99]
    assert offsets(reader, 0, 99) == []


def test_a_value_of_five_mebibytes_is_read_and_batches_stay_bounded(
    kafka: EmbeddedKafka, topic: MakeTopic, reader_of: ReaderOf
) -> None:
    name = topic(1, {"max.message.bytes": str(16 * MIB)})
    send(kafka, name, [bytes([number]) * (5 * MIB) for number in range(40)])

    batches = list(reader_of(kafka, name).read([PartitionRange(0, 0, 40)]))

    assert sum(map(len, batches)) == 40
    assert max(batch.nbytes for batch in batches) < 64 * MIB
    assert [value[:1][0] for batch in batches for value in batch.column("value").to_pylist()] == list(range(40))


def delete_records(kafka: EmbeddedKafka, topic: str, before: int) -> None:
    """Have Kafka delete the records of partition 0 before an offset, as retention would."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for response in admin.delete_records([TopicPartition(topic, 0, before)]).values():
        response.result(30)


def test_offsets_that_are_deleted_are_an_error_that_names_them(
    kafka: EmbeddedKafka, topic: MakeTopic, reader_of: ReaderOf
) -> None:
    name = topic(1)
    send(kafka, name, [b"value"] * 20)
    delete_records(kafka, name, before=15)

    with pytest.raises(ReadError, match=f"{name}.*partition 0, offset 3") as raised:
        offsets(reader_of(kafka, name), 3, 20)

    assert raised.value.failure.kind is FailureKind.DELETED
    assert offsets(reader_of(kafka, name), 15, 20) == list(range(15, 20))


def test_a_partition_that_ends_before_the_range_is_an_error(
    kafka: EmbeddedKafka, topic: MakeTopic, reader_of: ReaderOf
) -> None:
    name = topic(1)
    send(kafka, name, [b"value"] * 20)

    with pytest.raises(ReadError) as raised:
        offsets(reader_of(kafka, name), 25, 30)

    assert raised.value.failure.kind is FailureKind.DELETED


def test_records_that_are_deleted_while_they_are_read_are_never_passed_over(
    kafka: EmbeddedKafka, topic: MakeTopic, reader_of: ReaderOf
) -> None:
    name = topic(1)
    # More than a consumer queues.
    send(kafka, name, [bytes(900_000)] * 200)
    batches = reader_of(kafka, name).read([PartitionRange(0, 0, 200)])
    taken = next(batches)["offset"].to_pylist()
    delete_records(kafka, name, before=199)

    with pytest.raises(ReadError) as raised:
        taken.extend(offset for batch in batches for offset in batch["offset"].to_pylist())

    assert raised.value.failure.kind is FailureKind.DELETED
    assert taken == list(range(len(taken)))


@pytest.fixture
def own_kafka(tmp_path: Path, missing_service: Callable[[str], NoReturn]) -> Iterator[EmbeddedKafka]:
    """A Kafka that a test may kill."""
    broker = EmbeddedKafka(tmp_path)
    try:
        broker.start()
    except ServiceMissingError as error:
        missing_service(str(error))
    yield broker
    broker.stop()


# The Python consumer is for machines without Rust.
few_readers = pytest.mark.parametrize(
    "reader_of", [NativeConsumer, pytest.param(PythonConsumer, marks=pytest.mark.slow)], indirect=True
)


@few_readers
def test_reading_goes_on_after_the_broker_was_killed_and_started_again(
    own_kafka: EmbeddedKafka, reader_of: ReaderOf
) -> None:
    create_topic(own_kafka.bootstrap_servers, "events", 1)
    send(own_kafka, "events", [bytes(900_000)] * 200)
    batches = reader_of(own_kafka, "events").read([PartitionRange(0, 0, 200)])
    taken = next(batches)["offset"].to_pylist()

    own_kafka.kill()
    own_kafka.start()
    for batch in batches:
        taken += batch["offset"].to_pylist()

    assert taken == list(range(200))


class SecondBroker(EmbeddedKafka):
    """Another broker of a cluster, which clients reach by a proxy."""

    def __init__(self, directory: Path, first: EmbeddedKafka) -> None:
        super().__init__(directory)
        self._voters = properties(first.directory / "server.properties")["controller.quorum.voters"]
        cluster = properties(first.directory / "data" / "meta.properties")["cluster.id"]
        # As Kafka's StorageTool formats the folder of a broker that is not a controller.
        identity = {"version": 1, "cluster.id": cluster, "node.id": 2, "directory.id": "c2Vjb25kLWJyb2tlci0xMg"}
        self._data.mkdir(parents=True)
        (self._data / "meta.properties").write_text("".join(f"{name}={value}\n" for name, value in identity.items()))
        self.proxy = KafkaProxy(free_port(), int(self.bootstrap_servers.rpartition(":")[2]))

    def _settings(self) -> Mapping[str, str | int]:
        return {
            **super()._settings(),
            "process.roles": "broker",
            "node.id": 2,
            "controller.quorum.voters": self._voters,
            "listeners": f"PLAINTEXT://{self.bootstrap_servers}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{self.proxy.port}",
        }


def properties(file: Path) -> dict[str, str]:
    """The settings in a file of Kafka's."""
    lines = [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


@pytest.fixture
def two_brokers(tmp_path: Path, own_kafka: EmbeddedKafka) -> Iterator[SecondBroker]:
    """The second of two brokers; it leads partition 1 of the topic `events`, and the first one partition 0."""
    second = SecondBroker(tmp_path / "second", own_kafka)
    with second.proxy.running(), second:
        admin = AdminClient({"bootstrap.servers": own_kafka.bootstrap_servers})
        admin.create_topics([NewTopic("events", num_partitions=2, replica_assignment=[[1], [2]])])["events"].result(30)
        eventually(lambda: leaders(own_kafka) == [1, 2], timeout=30)
        yield second


def leaders(kafka: EmbeddedKafka) -> list[int]:
    """The node that leads each partition of the topic `events`; -1 where none does."""
    found = AdminClient({"bootstrap.servers": kafka.bootstrap_servers}).list_topics("events", timeout=10)
    return [each.leader for _, each in sorted(found.topics["events"].partitions.items())]


@pytest.mark.slow
@few_readers
def test_a_partition_without_a_leader_delays_no_other_one_and_is_read_once_it_has_one(
    own_kafka: EmbeddedKafka, two_brokers: SecondBroker, reader_of: ReaderOf
) -> None:
    for partition in (0, 1):
        send(own_kafka, "events", [bytes(10)] * 100, partition)
    two_brokers.kill()
    eventually(lambda: leaders(own_kafka) == [1, -1], timeout=30)
    reader, ranges = reader_of(own_kafka, "events", patience=3), [PartitionRange(0, 0, 100), PartitionRange(1, 0, 100)]
    taken: list[int] = []

    with pytest.raises(ReadError, match="no record of partition 1 from offset 0 for 3 s") as raised:
        taken.extend(number for batch in reader.read(ranges) for number in batch["partition"].to_pylist())
    assert (taken, raised.value.failure.kind) == ([0] * 100, FailureKind.UNAVAILABLE)

    two_brokers.start()
    patient = reader_of(own_kafka, "events", patience=60)
    assert len(read(patient, *ranges)) == len(read(reader, *ranges)) == 200


@pytest.mark.slow
@few_readers
def test_a_slow_broker_is_waited_for_as_long_as_it_sends_something(
    own_kafka: EmbeddedKafka, two_brokers: SecondBroker, reader_of: ReaderOf
) -> None:
    send(own_kafka, "events", [bytes(900_000)] * 20, partition=1)
    two_brokers.proxy.bytes_per_second = 4 * MIB
    started, patience = time.monotonic(), 3

    found = read(reader_of(own_kafka, "events", patience), PartitionRange(1, 0, 20))

    assert found["offset"].to_pylist() == list(range(20))
    assert time.monotonic() - started > patience


@few_readers
def test_a_broker_that_stays_away_is_reported_as_unavailable(own_kafka: EmbeddedKafka, reader_of: ReaderOf) -> None:
    create_topic(own_kafka.bootstrap_servers, "events", 1)
    send(own_kafka, "events", [bytes(900_000)] * 200)
    batches = reader_of(own_kafka, "events", patience=3).read([PartitionRange(0, 0, 200)])
    next(batches)
    own_kafka.kill()

    with pytest.raises(ReadError, match="0 from offset") as raised:
        list(batches)

    assert raised.value.failure.kind is FailureKind.UNAVAILABLE
