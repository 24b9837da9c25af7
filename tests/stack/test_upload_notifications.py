"""The object store's notifications of files that it accepted: one for each, though the store is killed meanwhile."""

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO

import pytest
from confluent_kafka import Consumer, TopicPartition
from minio import Minio

from tests.stack.platform import Stack
from tests.support.eventually import eventually
from tools.stack import kafka

BUCKET, TOPIC = "landing", "files.notifications"
UPLOADERS, REST_SECONDS = 4, 0.03


class Uploaders:
    """Threads that put one small object after the other, and remember those that the store said it has."""

    def __init__(self, uploads: Minio, folder: str) -> None:
        self.accepted: list[str] = []
        self._uploads, self._folder = uploads, folder
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(UPLOADERS)]

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Let them upload until the block ends."""
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in self._threads:
                thread.join()

    def _run(self, uploader: int) -> None:
        number = 0
        while not self._over.wait(REST_SECONDS):
            number += 1
            self._put(f"{self._folder}/{uploader}-{number}.json")

    def _put(self, name: str) -> None:
        try:
            self._uploads.put_object(BUCKET, name, BytesIO(b"\n"), 1)
        except Exception:  # the store is being killed: it need not notify of objects that it did not accept
            return
        self.accepted.append(name)


@pytest.fixture
def reported() -> Iterator[Callable[[], set[str]]]:
    """Reads which objects the topic has notifications of since the test began; each call reads on."""
    access = kafka("ingest-events")
    consumer = Consumer({**access.for_clients(), "group.id": "spark-kafka-notified", "enable.auto.commit": False})
    consumer.assign(_ends(consumer))
    names: set[str] = set()

    def read_on() -> set[str]:
        while messages := consumer.consume(1000, timeout=1):
            names.update(_object_named(message.value() or b"{}") for message in messages)
        return names

    yield read_on
    consumer.close()


def _ends(consumer: Consumer) -> list[TopicPartition]:
    partitions = [TopicPartition(TOPIC, number) for number in consumer.list_topics(TOPIC, 10).topics[TOPIC].partitions]
    for partition in partitions:
        partition.offset = consumer.get_watermark_offsets(partition, 10)[1]
    return partitions


def _object_named(value: bytes) -> str:
    return str(json.loads(value).get("Key", "")).removeprefix(f"{BUCKET}/")


@pytest.mark.slow
def test_the_store_notifies_of_each_file_that_it_accepted_though_it_is_killed(
    stack: Stack, uploads: Minio, reported: Callable[[], set[str]]
) -> None:
    uploaders = Uploaders(uploads, f"incoming/notified-{uuid.uuid4().hex}")

    with uploaders.at_work():
        for _ in range(3):
            before = len(uploaders.accepted)
            eventually(lambda: len(uploaders.accepted) > before + 30, timeout=60)  # noqa: B023 # called at once
            stack.crash("object-store")
            stack.await_health("object-store")

    eventually(lambda: set(uploaders.accepted) <= reported(), timeout=60)
