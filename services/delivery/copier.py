"""From the topic to files: an offset is committed once the file that has its record is there.

So nothing is left out, and after a crash some files are written again under the same names, with the same events or
more; who reads them knows events by their ids.
"""

import logging
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Event

import zstandard
from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from gamelake.model.errors import KafkaUnavailableError
from gamelake.observability.metrics.endpoint import Heartbeat
from gamelake.schemas.framing import HEADER_BYTES, MAGIC
from gamelake.storage.store import Store
from services.delivery.settings import DeliverySettings

log = logging.getLogger(__name__)

_AT_ONCE = 2_000
_LOOK_SECONDS = 0.2
# Beside size and time, as a compressor holds back what it was given: so much of it at most.
_MOST_EVENTS = 500_000
_MORE = 0x80
_LEVEL = 3


@dataclass(slots=True)
class Parcel:
    """What was read of a partition since the last file.

    Attributes:
        first_offset: of its first record, which names the file: what is delivered again takes its place.
        next_offset: of the record after its last one.
        taken_at: when Kafka took its first record in, in milliseconds since 1970.
        opened_at: when it was begun, by a clock that only rises (seconds).
        events: records that are in the file.
        passed_over: records that are none of events, which the stream of records sets aside.
    """

    partition: int
    first_offset: int
    taken_at: int
    opened_at: float
    next_offset: int = 0
    events: int = 0
    passed_over: int = 0
    unpacked: int = 0
    _content: bytearray = field(default_factory=bytearray)
    _deflater: "zstandard.ZstdCompressionObj" = field(
        default_factory=lambda: zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compressobj()
    )

    def add(self, offset: int, value: bytes | None) -> None:
        """Take a record in; one that has no event's frame is passed over."""
        self.next_offset = offset + 1
        if value is None or len(value) < HEADER_BYTES or value[0] != MAGIC or value[HEADER_BYTES - 1] != 0:
            self.passed_over += 1
            return
        message = varint(len(value) - HEADER_BYTES) + value[HEADER_BYTES:]
        self._content += self._deflater.compress(message)
        self.unpacked += len(message)
        self.events += 1

    def key(self, prefix: str, topic: str) -> str:
        """The name of the file: dated by the hour in which Kafka took the first record in."""
        hour = datetime.fromtimestamp(self.taken_at / 1000, UTC)
        return f"{prefix}{hour:%Y/%m/%d/%H}/{topic}-{self.partition}-{self.first_offset:020d}.binpb.zst"

    def packed(self) -> bytes:
        """The file; nothing can be added any more."""
        return bytes(self._content + self._deflater.flush())


def varint(number: int) -> bytes:
    """A length as Protobuf writes it."""
    result = bytearray()
    while number >= _MORE:
        result.append(number & (_MORE - 1) | _MORE)
        number >>= 7
    result.append(number)
    return bytes(result)


class Copying:
    """Copies until it is told to stop, and then what it has in hand."""

    def __init__(self, settings: DeliverySettings, store: Store) -> None:
        self._settings = settings
        self._store = store
        self._heartbeat = Heartbeat(settings.heartbeat_file)
        self._parcels: dict[int, Parcel] = {}
        self._consumer = Consumer(
            {
                **settings.kafka.for_clients(),
                "group.id": settings.group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                # What waits in memory for us, beside what we hold.
                "queued.max.messages.kbytes": 16_384,
            }
        )

    def run(self, stop: Event) -> None:
        """Copy.

        Raises:
            KafkaUnavailableError: Kafka refuses what we ask.
        """
        self._consumer.subscribe([self._settings.topic], on_revoke=lambda _, lost: self._drop(lost))
        try:
            while not stop.is_set():
                for message in self._consumer.consume(_AT_ONCE, _LOOK_SECONDS):
                    self._take(message)
                self._deliver([parcel for parcel in self._parcels.values() if self._is_due(parcel)])
                self._heartbeat.beat()
            self._deliver(list(self._parcels.values()))
        except KafkaException as error:
            raise KafkaUnavailableError(f"the topic '{self._settings.topic}' can't be copied: {error}") from error
        finally:
            self._consumer.close()

    def _take(self, message: Message) -> None:
        error = message.error()
        if error is not None:
            if error.retriable() or not error.fatal():
                log.warning("Kafka: %s", error.str())
                return
            raise KafkaException(error)
        partition, offset = message.partition() or 0, message.offset() or 0
        parcel = self._parcels.get(partition)
        if parcel is None:
            parcel = Parcel(partition, offset, message.timestamp()[1], time.monotonic())
            self._parcels[partition] = parcel
            log.info("a file of partition %d is begun at offset %d", partition, offset)
        value = message.value()
        parcel.add(offset, value if isinstance(value, bytes) else None)

    def _is_due(self, parcel: Parcel) -> bool:
        is_old = time.monotonic() - parcel.opened_at >= self._settings.longest.total_seconds()
        return is_old or parcel.unpacked >= self._settings.most_bytes or parcel.events >= _MOST_EVENTS

    def _deliver(self, parcels: list[Parcel]) -> None:
        for parcel in parcels:
            if parcel.events:
                key = parcel.key(self._settings.prefix, self._settings.topic)
                content = parcel.packed()
                self._store.put(key, content)
                log.info("delivered %s: %d events, %d bytes", key, parcel.events, len(content))
            del self._parcels[parcel.partition]
        if parcels:
            offsets = [TopicPartition(self._settings.topic, each.partition, each.next_offset) for each in parcels]
            self._consumer.commit(offsets=offsets, asynchronous=False)

    def _drop(self, lost: list[TopicPartition]) -> None:
        """Another process reads these partitions from where they were committed."""
        for each in lost:
            self._parcels.pop(each.partition, None)
