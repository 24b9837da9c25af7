"""The power fails: Kafka keeps each record that it has acknowledged, a lakehouse on a local disk each batch."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from gamelake.ledger.manifests import Manifests
from gamelake.objects.store import Location, Store
from tests.embedded.lakehouse import Lakehouse
from tests.embedded.power_cut import NoPowerCutError, PowerCutDisk
from tests.embedded.sending import Sender
from tests.support.eventually import eventually
from tools.embedded import EmbeddedKafka
from tools.embedded.kafka import SYNCED, UNSYNCED_TOPIC, create_topic

DISK_MIB = 512
PARTITIONS = 3
ACKNOWLEDGED_BEFORE, BATCHES_BEFORE = 2_000, 5
# Values by partition and offset.
Records = dict[tuple[int | None, int | None], bytes | None]
SYNCED_NAME, UNSYNCED_NAME = "synced", "unsynced"


@pytest.fixture
def disk(
    request: pytest.FixtureRequest, tmp_path: Path, missing_service: Callable[[str], NoReturn]
) -> Iterator[PowerCutDisk]:
    """The disk whose power fails: a folder of this name in the test's own folder."""
    try:
        with PowerCutDisk.mounted(tmp_path / request.param, DISK_MIB) as disk:
            yield disk
    except NoPowerCutError as error:
        missing_service(str(error))


class NumberedRecords:
    """Sends numbered records to a topic until it is stopped, and keeps where Kafka has acknowledged each one."""

    def __init__(self, kafka: EmbeddedKafka, topic: str) -> None:
        self._topic = topic
        self._producer = Producer(
            {"bootstrap.servers": kafka.bootstrap_servers, "acks": "all", "linger.ms": 5, "log_level": 0}
        )
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.acknowledged: Records = {}

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop sending; what is not acknowledged is dropped."""
        self._stop.set()
        self._thread.join()
        self._producer.purge()
        self._producer.flush(10)

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            try:
                self._producer.produce(self._topic, str(number).encode(), on_delivery=self._delivered)
            except BufferError:
                self._producer.poll(0.05)
                continue
            number += 1
            self._producer.poll(0 if number % 50 else 0.005)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acknowledged[message.partition(), message.offset()] = message.value()


def records_of(kafka: EmbeddedKafka, topic: str) -> Records:
    """Values by partition and offset."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "test"})
    ends = [consumer.get_watermark_offsets(TopicPartition(topic, each), timeout=30)[1] for each in range(PARTITIONS)]
    consumer.assign([TopicPartition(topic, each, 0) for each in range(PARTITIONS)])
    found: Records = {}
    while len(found) < sum(ends):
        messages = consumer.consume(10_000, timeout=1)
        assert not any(message.error() for message in messages)
        found |= {(message.partition(), message.offset()): message.value() for message in messages}
    consumer.close()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("disk", ["kafka"], indirect=True)
def test_a_power_cut_loses_acknowledged_records_only_where_kafka_does_not_sync(disk: PowerCutDisk) -> None:
    with EmbeddedKafka(disk.folder, SYNCED) as kafka:
        create_topic(kafka.bootstrap_servers, SYNCED_NAME, PARTITIONS)
        create_topic(kafka.bootstrap_servers, UNSYNCED_NAME, PARTITIONS, UNSYNCED_TOPIC)
        senders = [NumberedRecords(kafka, topic) for topic in (SYNCED_NAME, UNSYNCED_NAME)]
        for sender in senders:
            sender.start()
        eventually(lambda: all(len(sender.acknowledged) > ACKNOWLEDGED_BEFORE for sender in senders), timeout=60)
        # The power may have been gone before anything later is acknowledged.
        acknowledged = [dict(sender.acknowledged) for sender in senders]
        disk.cut()
        kafka.kill()
        for sender in senders:
            sender.stop()
        disk.restore()
        kafka.start()
        synced, unsynced = (records_of(kafka, topic) for topic in (SYNCED_NAME, UNSYNCED_NAME))

    assert acknowledged[0].items() <= synced.items()
    assert not acknowledged[1].items() <= unsynced.items()


@pytest.mark.parametrize("disk", ["lake"], indirect=True)
def test_a_power_cut_leaves_a_local_lakehouse_that_continues_and_reconciles(
    disk: PowerCutDisk, lakehouse: Lakehouse, sender: Sender
) -> None:
    manifests = Manifests(lakehouse.store, "ingest_events")
    for game in ("Archery", "Bingo", "Archery"):
        sender.send_events(1_000, game)
    lakehouse.settings["GAMELAKE_MAX_OFFSETS_PER_TRIGGER"] = "100"
    job = lakehouse.start("--available-now")
    try:
        # The batch after these may be at any step.
        eventually(lambda: len(manifests.batches()) >= BATCHES_BEFORE, timeout=180)
        disk.write_journal()
        disk.cut()
    finally:
        job.process.kill()
        job.process.wait()
    disk.restore()
    decided = manifests.batches()
    del lakehouse.settings["GAMELAKE_MAX_OFFSETS_PER_TRIGGER"]
    lakehouse.ingest()

    assert len(decided) >= BATCHES_BEFORE
    assert lakehouse.event_ids() == Counter(sender.ledger.event_ids)
    assert lakehouse.reconciliation().problems == []


@pytest.mark.parametrize("disk", ["lake"], indirect=True)
def test_a_power_cut_damages_objects_only_of_a_local_store_that_does_not_sync(disk: PowerCutDisk) -> None:
    names = [f"folder-{number % 7}/{number}" for number in range(100)]
    for synced in (False, True):
        store = Store(Location(uri=f"file://{disk.folder}/{synced}", synced=synced))
        for number, name in enumerate(names):
            assert number % 2 or store.put_new(name, name.encode())
            store.put(name, name.encode())
    disk.write_journal()
    disk.cut()
    disk.restore()

    unsynced, synced_ones = (
        [store.get(name) for name in names]
        for store in (Store(Location(uri=f"file://{disk.folder}/{synced}")) for synced in (False, True))
    )
    assert synced_ones == [name.encode() for name in names]
    assert b"" in unsynced
