"""To Kafka: one wait per request, bounded memory, and a clear no when Kafka does not confirm.

Idempotent and with acks=all: a record that is confirmed is on all in-sync replicas, once.
"""

import asyncio
import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType

import msgspec
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from gamelake.kafka import KafkaAccess
from services.ingest.errors import NotTakenError

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.1
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


class Record(msgspec.Struct, gc=False):
    """What Kafka gets of an event."""

    key: bytes
    value: bytes


class _Delivery:
    """The records of one request on their way; all of its methods but the first run on the polling thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, records: int) -> None:
        self.done: asyncio.Future[KafkaError | None] = loop.create_future()
        self._loop = loop
        self._left = records
        self._error: KafkaError | None = None

    def report(self, error: KafkaError | None, _message: Message) -> None:
        """Kafka's answer for one record."""
        if error is not None:
            self._error = error
        self._left -= 1
        if not self._left:
            self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        if not self.done.cancelled():
            self.done.set_result(self._error)


class Outbox:
    """Sends the records of requests to one topic, from the event loop that it was started on."""

    def __init__(self, kafka: KafkaAccess, topic: str, limits: Limits) -> None:
        self._topic = topic
        self._limits = limits
        self._waiting_records = 0
        self._waiting_bytes = 0
        self._ends = threading.Event()
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
        self._thread = threading.Thread(target=self._poll, name="kafka", daemon=True)
        self._thread.start()

    @property
    def waiting_records(self) -> int:
        """Records that Kafka has yet to confirm."""
        return self._waiting_records

    async def send(self, records: Sequence[Record]) -> None:
        """Return when Kafka's in-sync replicas have all of the records.

        Raises:
            NotTakenError: too much is waiting already, or Kafka has not confirmed all of them in time.
        """
        size = sum(len(record.key) + len(record.value) for record in records)
        self._make_sure_of_room(len(records), size)
        self._waiting_records += len(records)
        self._waiting_bytes += size
        try:
            error = await self._produce(records)
        finally:
            self._waiting_records -= len(records)
            self._waiting_bytes -= size
        if error is not None:
            raise NotTakenError("Kafka did not confirm the events")

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
        left = self._producer.flush(patience.total_seconds())
        if left:
            log.error("%d records were not confirmed when the service ended; their senders know", left)
        self._ends.set()
        self._thread.join()

    def _make_sure_of_room(self, records: int, size: int) -> None:
        over = self._waiting_records + records > self._limits.records or self._waiting_bytes + size > self._limits.bytes
        if over:
            raise NotTakenError("too many events wait for Kafka")

    async def _produce(self, records: Sequence[Record]) -> KafkaError | None:
        delivery = _Delivery(asyncio.get_running_loop(), len(records))
        batch = [{"key": record.key, "value": record.value} for record in records]
        taken = self._producer.produce_batch(self._topic, batch, on_delivery=delivery.report)
        if taken < len(records):
            raise NotTakenError("the queue to Kafka is full")
        return await delivery.done

    def _poll(self) -> None:
        while not self._ends.is_set():
            self._producer.poll(_POLL_SECONDS)
