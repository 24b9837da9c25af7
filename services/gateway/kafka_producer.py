"""To Kafka: one wait per request, bounded memory, and a clear no when Kafka does not confirm.

Idempotent and with acks=all: a record that is confirmed is on all in-sync replicas, once.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import Any, TypedDict, cast

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from gamelake.kafka import KafkaAccess
from services.gateway.errors import NotTakenError

log = logging.getLogger(__name__)

# Below what Kafka and its client take at most by default, 1,048,588 and 1,000,000 bytes with what they add.
LARGEST_VALUE_BYTES = 950_000
_LOOK_SECONDS = 0.001
_SETTINGS: Mapping[str, str | int | bool] = MappingProxyType(
    {
        "enable.idempotence": True,
        "acks": "all",
        "compression.type": "lz4",
        "linger.ms": 5,
        "batch.num.messages": 20_000,
        # What librdkafka itself would write is counted as a failure of the requests concerned.
        "log_level": 2,
    }
)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may wait for Kafka at once, and for how long."""

    records: int
    bytes: int
    patience: timedelta


class Record(TypedDict):
    """What Kafka gets of an event, as the client takes it."""

    key: str
    value: bytes


class _Delivery:
    """The records of one request on their way; `release` is called when Kafka has answered for the last of them."""

    def __init__(self, records: int, release: Callable[[], None]) -> None:
        self.done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._left = records
        self._failed = False
        self._release = release

    def report(self, error: KafkaError | None, _message: Message) -> None:
        """Kafka's answer for one record."""
        if error is not None:
            self._failed = True
        self._less(1)

    def not_taken(self, records: int) -> None:
        """So many records didn't get as far as the queue."""
        self._failed = True
        self._less(records)

    def _less(self, records: int) -> None:
        self._left -= records
        if self._left:
            return
        self._release()
        if not self.done.done():
            self.done.set_result(not self._failed)


class Outbox:
    """Sends the records of requests to one topic, from the event loop that it was started on."""

    def __init__(self, kafka: KafkaAccess, topic: str, limits: Limits) -> None:
        self._topic = topic
        self._limits = limits
        self._waiting_records = 0
        self._waiting_bytes = 0
        self._next_look: asyncio.TimerHandle | None = None
        milliseconds = int(limits.patience.total_seconds() * 1000)
        self._producer = Producer(
            {
                **_SETTINGS,
                **kafka.for_clients(),
                "message.timeout.ms": milliseconds,
                # Beyond what may wait, so that a request is never taken by half.
                "queue.buffering.max.messages": 2 * limits.records,
                "queue.buffering.max.kbytes": 2 * limits.bytes // 1024,
            }
        )

    @property
    def waiting_records(self) -> int:
        """Records that Kafka has yet to confirm."""
        return self._waiting_records

    def send(self, records: list[Record]) -> Awaitable[None]:
        """Hand records over; what is given ends when Kafka's in-sync replicas have all of them.

        Raises:
            NotTakenError: too much is waiting already; or, later, Kafka has not confirmed all of them in time.
        """
        if not records:
            return _nothing()
        size = sum([len(record["key"]) + len(record["value"]) for record in records])
        self._make_sure_of_room(len(records), size)
        delivery = _Delivery(len(records), partial(self._count, -len(records), -size))
        # librdkafka's own failures are reported to the delivery, those of the call itself are told by the number.
        batch = cast("list[dict[str, Any]]", records)
        taken = self._producer.produce_batch(self._topic, batch, on_delivery=delivery.report)
        self._count(len(records), size)
        if taken < len(records):
            delivery.not_taken(len(records) - taken)
        if self._next_look is None:
            loop = asyncio.get_running_loop()
            self._next_look = loop.call_later(_LOOK_SECONDS, self._look, loop)
        return _confirmed(delivery)

    def reaches_kafka(self, patience: timedelta) -> bool:
        """Whether the topic's leaders are known; it may take as long as the patience."""
        try:
            found = self._producer.list_topics(self._topic, timeout=patience.total_seconds())
        except KafkaException:
            return False
        topic = found.topics.get(self._topic)
        return topic is not None and topic.error is None and bool(topic.partitions)

    def close(self, patience: timedelta) -> None:
        """Wait for what is on its way, then end."""
        if self._next_look is not None:
            self._next_look.cancel()
        left = self._producer.flush(patience.total_seconds())
        if left:
            log.error("%d records were not confirmed when the service ended; their senders know", left)

    def _make_sure_of_room(self, records: int, size: int) -> None:
        over = self._waiting_records + records > self._limits.records or self._waiting_bytes + size > self._limits.bytes
        if over:
            raise NotTakenError("too many events wait for Kafka")

    def _count(self, records: int, size: int) -> None:
        self._waiting_records += records
        self._waiting_bytes += size

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take Kafka's answers, and come back while some are missing.

        On the event loop: a thread of its own would fight with it over Python's lock for each single record.
        """
        self._producer.poll(0)
        self._next_look = loop.call_later(_LOOK_SECONDS, self._look, loop) if self._waiting_records else None


async def _nothing() -> None:
    """There is nothing to wait for."""


async def _confirmed(delivery: _Delivery) -> None:
    if not await delivery.done:
        raise NotTakenError("Kafka did not confirm the events")
