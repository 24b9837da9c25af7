"""Sends records to Kafka: one wait per request, bounded memory, and an error when Kafka does not confirm.

The producer is idempotent and uses acks=all: a confirmed record is on all in-sync replicas, once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import Any, TypedDict, cast

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from gamelake.kafka import KafkaAccess
from gamelake.model.logs import event_logger
from services.gateway.errors import UnavailableError
from services.gateway.limits.memory_budget import RECORD_BYTES

log = event_logger(__name__)

_POLL_SECONDS = 0.001
PRODUCER_SETTINGS: Mapping[str, str | int | bool] = MappingProxyType(
    {
        "enable.idempotence": True,
        "acks": "all",
        "compression.type": "lz4",
        "linger.ms": 5,
        "batch.num.messages": 20_000,
        # Failures that librdkafka would log are counted with the requests that they fail.
        "log_level": 2,
    }
)


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """The number of bytes that may wait for Kafka at once, and the time in which a record must be confirmed.

    A record counts with its key, its value and the `RECORD_BYTES` that the client has for it.
    """

    bytes: int
    timeout: timedelta


class Record(TypedDict):
    """A Kafka record, as the client's `produce_batch` expects it."""

    key: str
    value: bytes


def size_of(records: Sequence[Record]) -> int:
    """Return the bytes of memory that records take while they wait for Kafka."""
    return RECORD_BYTES * len(records) + sum([len(record["key"]) + len(record["value"]) for record in records])


class _Delivery:
    """The records of one request that are not confirmed yet.

    Args:
        release: called when Kafka has answered for the last of them.
    """

    def __init__(self, records: int, release: Callable[[], None]) -> None:
        self.done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._left = records
        self._failed = False
        self._release = release

    def report(self, error: KafkaError | None, _message: Message) -> None:
        """The client's delivery report for one record."""
        if error is not None:
            self._failed = True
        self._less(1)

    def not_queued(self, records: int) -> None:
        """Count records that the client's queue did not take."""
        self._failed = True
        self._less(records)

    def _less(self, records: int) -> None:
        self._left -= records
        if self._left:
            return
        self._release()
        if not self.done.done():
            self.done.set_result(not self._failed)


class EventProducer:
    """Sends the records of requests to one topic, from the event loop that runs when `send` is called."""

    def __init__(self, kafka: KafkaAccess, topic: str, limits: QueueLimits) -> None:
        self._topic = topic
        self._limits = limits
        self._waiting_records = 0
        self._waiting_bytes = 0
        self._next_poll: asyncio.TimerHandle | None = None
        milliseconds = int(limits.timeout.total_seconds() * 1000)
        self._settings: dict[str, Any] = {
            **PRODUCER_SETTINGS,
            **kafka.for_clients(),
            "message.timeout.ms": milliseconds,
            # Above our own limit, so that the queue never takes only a part of a request.
            "queue.buffering.max.messages": 2 * limits.bytes // RECORD_BYTES,
            "queue.buffering.max.kbytes": 2 * limits.bytes // 1024,
        }
        self._producer = Producer(self._settings)

    @property
    def waiting_records(self) -> int:
        """Records that Kafka has not confirmed yet."""
        return self._waiting_records

    def send(self, records: list[Record]) -> Awaitable[None]:
        """Queue records; the result is done when Kafka's in-sync replicas have all of them.

        Raises:
            UnavailableError: too much waits already. Raised by the result: Kafka has not confirmed all of them
                in time.
        """
        if not records:
            return _nothing()
        size = size_of(records)
        if self._waiting_bytes + size > self._limits.bytes:
            raise UnavailableError("too many events wait for Kafka; send again later")
        delivery = _Delivery(len(records), partial(self._count, -len(records), -size))
        # Failures to deliver are reported to the delivery; records that were not queued show in the count alone.
        batch = cast("list[dict[str, Any]]", records)
        queued = self._producer.produce_batch(self._topic, batch, on_delivery=delivery.report)
        self._count(len(records), size)
        if queued < len(records):
            delivery.not_queued(len(records) - queued)
        if self._next_poll is None:
            loop = asyncio.get_running_loop()
            self._next_poll = loop.call_later(_POLL_SECONDS, self._poll, loop)
        return _confirmed(delivery)

    def is_kafka_reachable(self, timeout: timedelta) -> bool:
        """Return True if the topic's leaders are known; blocks for the timeout at most."""
        try:
            found = self._producer.list_topics(self._topic, timeout=timeout.total_seconds())
        except KafkaException:
            return False
        topic = found.topics.get(self._topic)
        return topic is not None and topic.error is None and bool(topic.partitions)

    def close(self, timeout: timedelta) -> None:
        """Wait until all records are confirmed or the timeout is over, then stop."""
        if self._next_poll is not None:
            self._next_poll.cancel()
        left = self._producer.flush(timeout.total_seconds())
        if left:
            log.error("records_unconfirmed", records=left, reason="shutdown; their requests were not acknowledged")

    def _count(self, records: int, size: int) -> None:
        self._waiting_records += records
        self._waiting_bytes += size

    def _poll(self, loop: asyncio.AbstractEventLoop) -> None:
        """Process delivery reports, and poll again while some are missing.

        On the event loop: a thread of its own would compete with it for Python's lock for every record.
        """
        try:
            self._producer.poll(0)
        except KafkaException as error:
            self._replace_producer(error, loop)
        self._next_poll = loop.call_later(_POLL_SECONDS, self._poll, loop) if self._waiting_records else None

    def _replace_producer(self, error: KafkaException, loop: asyncio.AbstractEventLoop) -> None:
        """Continue with a new client after a fatal error, by which the client stops for good.

        Such as: Kafka lost its disk and gives the client's producer id to another one. The records that wait are not
        confirmed.
        """
        log.error("producer_replaced", error=str(error), action="requests with unconfirmed records get 503")
        failed, self._producer = self._producer, Producer(self._settings)
        failed.purge()
        while len(failed):
            with suppress(KafkaException):  # the same error again
                failed.poll(_POLL_SECONDS)
        # Ends the client's threads, which takes time.
        loop.run_in_executor(None, failed.close)


async def _nothing() -> None:
    """There is nothing to wait for."""


async def _confirmed(delivery: _Delivery) -> None:
    if not await delivery.done:
        raise UnavailableError("Kafka did not confirm the events; send again later")
