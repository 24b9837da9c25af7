"""Copies a topic into files: an offset is committed once the file with its record is in the object store.

No record is left out. After a crash some files are written again under the same names, with the same events or more;
readers recognise duplicates by the event ids.

Source: Protocol Buffers, `util/delimited_message_util.h`; Amazon Data Firehose, "Understand data delivery", for when a
buffer is full and how files are named.
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

_MAX_MESSAGES = 2_000
_POLL_SECONDS = 0.2
# A third limit of a file, as the compressor holds back some of its input.
_MAX_EVENTS = 500_000
_MORE = 0x80
_LEVEL = 3


@dataclass(slots=True)
class PartitionFile:
    """The events of one partition that become one file: length-delimited messages, compressed by zstd as they come.

    Attributes:
        first_offset: of its first record; it is part of the file's name, so that a second delivery replaces the file.
        next_offset: of the record after its last one.
        timestamp: Kafka's timestamp of its first record, in milliseconds since 1970.
        opened_at: when it was begun, in seconds of the monotonic clock.
        events: the number of events in the file.
        skipped: the number of records that are no events; the ingest stream dead-letters them.
        decompressed: bytes of the events before compression.
    """

    partition: int
    first_offset: int
    timestamp: int
    opened_at: float
    next_offset: int = 0
    events: int = 0
    skipped: int = 0
    decompressed: int = 0
    _content: bytearray = field(default_factory=bytearray)
    _compressor: "zstandard.ZstdCompressionObj" = field(
        default_factory=lambda: zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compressobj()
    )

    def add(self, offset: int, value: bytes | None) -> None:
        """Add a record; one without the header of an event is skipped."""
        self.next_offset = offset + 1
        if value is None or len(value) < HEADER_BYTES or value[0] != MAGIC or value[HEADER_BYTES - 1] != 0:
            self.skipped += 1
            return
        message = varint(len(value) - HEADER_BYTES) + value[HEADER_BYTES:]
        self._content += self._compressor.compress(message)
        self.decompressed += len(message)
        self.events += 1

    def key(self, prefix: str, topic: str) -> str:
        """The object key of the file, dated by the hour of its first record's timestamp."""
        hour = datetime.fromtimestamp(self.timestamp / 1000, UTC)
        return f"{prefix}{hour:%Y/%m/%d/%H}/{topic}-{self.partition}-{self.first_offset:020d}.binpb.zst"

    def finish(self) -> bytes:
        """The content of the file; no more records can be added."""
        return bytes(self._content + self._compressor.flush())


def varint(number: int) -> bytes:
    """A number as a Protobuf varint."""
    result = bytearray()
    while number >= _MORE:
        result.append(number & (_MORE - 1) | _MORE)
        number >>= 7
    result.append(number)
    return bytes(result)


class TopicCopier:
    """Copies a topic into files until it is stopped, then writes the unfinished ones."""

    def __init__(self, settings: DeliverySettings, store: Store) -> None:
        self._settings = settings
        self._store = store
        self._heartbeat = Heartbeat(settings.heartbeat_file)
        self._files: dict[int, PartitionFile] = {}
        self._consumer = Consumer(
            {
                **settings.kafka.for_clients(),
                "group.id": settings.group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                # The client's own buffer, in addition to the unfinished files.
                "queued.max.messages.kbytes": 16_384,
            }
        )

    def run(self, stop: Event) -> None:
        """Copy until `stop` is set.

        Raises:
            KafkaUnavailableError: Kafka refuses a request, or the client has a fatal error.
        """
        self._consumer.subscribe([self._settings.topic], on_revoke=lambda _, lost: self._drop(lost))
        try:
            while not stop.is_set():
                for message in self._consumer.consume(_MAX_MESSAGES, _POLL_SECONDS):
                    self._add(message)
                self._deliver([file for file in self._files.values() if self._is_due(file)])
                self._heartbeat.beat()
            self._deliver(list(self._files.values()))
        except KafkaException as error:
            raise KafkaUnavailableError(f"the topic '{self._settings.topic}' can't be copied: {error}") from error
        finally:
            self._consumer.close()

    def _add(self, message: Message) -> None:
        error = message.error()
        if error is not None:
            if error.retriable() or not error.fatal():
                log.warning("Kafka reports an error: %s; trying again", error.str())
                return
            raise KafkaException(error)
        partition, offset = message.partition() or 0, message.offset() or 0
        file = self._files.get(partition)
        if file is None:
            file = PartitionFile(partition, offset, message.timestamp()[1], time.monotonic())
            self._files[partition] = file
            log.info("began a file of partition %d at offset %d", partition, offset)
        value = message.value()
        file.add(offset, value if isinstance(value, bytes) else None)

    def _is_due(self, file: PartitionFile) -> bool:
        is_old = time.monotonic() - file.opened_at >= self._settings.max_age.total_seconds()
        return is_old or file.decompressed >= self._settings.max_bytes or file.events >= _MAX_EVENTS

    def _deliver(self, files: list[PartitionFile]) -> None:
        for file in files:
            if file.events:
                key = file.key(self._settings.prefix, self._settings.topic)
                content = file.finish()
                self._store.put(key, content)
                log.info("delivered %s: %d events, %d bytes", key, file.events, len(content))
            del self._files[file.partition]
        if files:
            offsets = [TopicPartition(self._settings.topic, each.partition, each.next_offset) for each in files]
            self._consumer.commit(offsets=offsets, asynchronous=False)

    def _drop(self, lost: list[TopicPartition]) -> None:
        """Discard the files of lost partitions: another process reads these from the committed offsets."""
        for each in lost:
            self._files.pop(each.partition, None)
