"""Copies a topic into files: an offset is committed once the file with its record is in the object store.

No record is left out. After a crash some files are written again under the same names, with the same events or more;
readers recognise duplicates by the event ids.

Memory does not grow with the backlog: the client's queue and each of its fetches are bounded in bytes, records are
taken from it one by one, and when the unfinished files together take more than their bound, the largest is delivered.

Source: Protocol Buffers, `util/delimited_message_util.h`; Amazon Data Firehose, "Understand data delivery", for when a
buffer is full and how files are named.
"""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Event

import zstandard
from confluent_kafka import KafkaException, Message, TopicPartition

from gamelake.model.errors import KafkaUnavailableError
from gamelake.model.logs import event_logger
from gamelake.objects.store import Store
from gamelake.observability.metrics.endpoint import Heartbeat
from services.bounded_consumer import BoundedConsumer
from services.delivery.metrics import DeliveryMetrics
from services.delivery.settings import DeliverySettings

log = event_logger(__name__)

# The framing of gamelake.schemas.framing, whose Arrow alone would take a third of the service's memory.
MAGIC, HEADER_BYTES = 0, 6
_RECORDS_PER_POLL = 2_000
_LAG_SECONDS, _LAG_TIMEOUT = 10.0, 5.0
# A third limit of a file, as the compressor holds back some of its input.
_MAX_EVENTS = 500_000
_MORE = 0x80
# A window of 512 KiB instead of 2 MiB: events repeat within less, and each partition has a compressor.
_COMPRESSION = zstandard.ZstdCompressionParameters.from_level(3, window_log=19, write_checksum=True)
# The estimate leaves out a stream's window and its blocks of input and output.
_COMPRESSOR_BYTES = _COMPRESSION.estimated_compression_context_size() + 2**19 + 2 * 2**17


@dataclass(slots=True)
class PartitionFile:
    """The events of one partition that become one file: length-delimited messages, compressed by zstd as they come.

    Attributes:
        first_offset: of its first record; it is part of the file's name, so that a second delivery replaces the file.
        next_offset: of the record after its last one.
        timestamp: Kafka's timestamp of its first record, in milliseconds since 1970.
        opened_at: when it was begun, in seconds of the monotonic clock.
        events: the number of events in the file.
        skipped: the number of records that are not events; the ingest stream dead-letters them.
        decompressed: bytes of the events before compression.
        memory: bytes that the unfinished file takes, with its compressor.
    """

    partition: int
    first_offset: int
    timestamp: int
    opened_at: float
    next_offset: int = 0
    events: int = 0
    skipped: int = 0
    decompressed: int = 0
    memory: int = _COMPRESSOR_BYTES
    _content: list[bytes] = field(default_factory=list)
    _compressor: "zstandard.ZstdCompressionObj" = field(
        default_factory=lambda: zstandard.ZstdCompressor(compression_params=_COMPRESSION).compressobj()
    )

    def add(self, offset: int, value: bytes | None) -> None:
        """Add a record; one without the header of an event is skipped."""
        self.next_offset = offset + 1
        if value is None or len(value) < HEADER_BYTES or value[0] != MAGIC or value[HEADER_BYTES - 1] != 0:
            self.skipped += 1
            return
        length = varint(len(value) - HEADER_BYTES)
        # No copy of the value: it may have megabytes.
        for part in (length, memoryview(value)[HEADER_BYTES:]):
            compressed = self._compressor.compress(part)
            if compressed:
                self._content.append(compressed)
                self.memory += len(compressed)
        self.decompressed += len(length) + len(value) - HEADER_BYTES
        self.events += 1

    def key(self, prefix: str, topic: str) -> str:
        """Return the object key of the file, dated by the hour of its first record's timestamp."""
        hour = datetime.fromtimestamp(self.timestamp / 1000, UTC)
        return f"{prefix}{hour:%Y/%m/%d/%H}/{topic}-{self.partition}-{self.first_offset:020d}.binpb.zst"

    def finish(self) -> bytes:
        """Finish the file, and return its content; no more records can be added."""
        self._content.append(self._compressor.flush())
        content = b"".join(self._content)
        self._content.clear()
        return content


def varint(number: int) -> bytes:
    """Encode a number as a Protobuf varint."""
    result = bytearray()
    while number >= _MORE:
        result.append(number & (_MORE - 1) | _MORE)
        number >>= 7
    result.append(number)
    return bytes(result)


class TopicCopier:
    """Copies a topic into files until it is stopped, then writes the unfinished ones."""

    def __init__(self, settings: DeliverySettings, store: Store, metrics: DeliveryMetrics) -> None:
        self._settings = settings
        self._store = store
        self._metrics = metrics
        self._heartbeat = Heartbeat(settings.telemetry.heartbeat_file)
        self._files: dict[int, PartitionFile] = {}
        self._memory = 0
        self._lag_at = -_LAG_SECONDS
        self._consumer = BoundedConsumer(
            settings.kafka,
            {
                "group.id": settings.group,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                # How long the partitions of a killed process wait for another one, or for itself after its restart; by
                # default 45 s.
                "session.timeout.ms": 15_000,
            },
        )

    def run(self, stop: Event) -> None:
        """Copy until `stop` is set.

        Raises:
            KafkaUnavailableError: Kafka refuses a request, or the client has a fatal error.
        """
        self._consumer.subscribe([self._settings.topic], on_revoke=lambda _, lost: self._drop(lost))
        try:
            while not stop.is_set():
                for message in self._consumer.records(_RECORDS_PER_POLL):
                    self._add(message)
                self._deliver([file for file in self._files.values() if self._is_due(file)])
                self._metrics.buffered(self._memory)
                self._measure_lag()
                self._heartbeat.beat()
            self._deliver(list(self._files.values()))
        except KafkaException as error:
            raise KafkaUnavailableError(f"the topic '{self._settings.topic}' can't be copied: {error}") from error
        finally:
            self._consumer.close()

    def _add(self, message: Message) -> None:
        """Add a record to its file; deliver that file if it is full, or the largest one if all take too much memory."""
        partition, offset = message.partition() or 0, message.offset() or 0
        file = self._files.get(partition)
        if file is None:
            file = PartitionFile(partition, offset, message.timestamp()[1], time.monotonic())
            self._files[partition] = file
            self._memory += file.memory
            log.info("delivery_file_begun", partition=partition, offset=offset)
        value, memory = message.value(), file.memory
        file.add(offset, value if isinstance(value, bytes) else None)
        self._memory += file.memory - memory
        if file.decompressed >= self._settings.max_bytes or file.events >= _MAX_EVENTS:
            self._deliver([file])
        if self._memory > self._settings.buffer_bytes:
            self._deliver([max(self._files.values(), key=lambda file: file.memory)])

    def _is_due(self, file: PartitionFile) -> bool:
        return time.monotonic() - file.opened_at >= self._settings.max_age.total_seconds()

    def _deliver(self, files: list[PartitionFile]) -> None:
        """Write files, and commit the offsets of each at once: a process that is killed has delivered what it could."""
        for file in files:
            if file.events:
                key = file.key(self._settings.prefix, self._settings.topic)
                content = file.finish()
                self._store.put(key, content)
                log.info("file_delivered", path=key, records=file.events, bytes=len(content))
            self._forget(file.partition)
            offset = TopicPartition(self._settings.topic, file.partition, file.next_offset)
            self._consumer.commit(offsets=[offset], asynchronous=False)
            self._metrics.delivered()
            self._heartbeat.beat()

    def _forget(self, partition: int) -> None:
        file = self._files.pop(partition, None)
        if file is not None:
            self._memory -= file.memory

    def _drop(self, lost: list[TopicPartition]) -> None:
        """Discard the files of lost partitions: another process reads these from the committed offsets."""
        for each in lost:
            self._forget(each.partition)

    def _measure_lag(self) -> None:
        if time.monotonic() - self._lag_at < _LAG_SECONDS:
            return
        self._lag_at = time.monotonic()
        try:
            committed = self._consumer.committed(self._consumer.assignment(), timeout=_LAG_TIMEOUT)
            self._metrics.behind(sum(self._offsets_behind(each) for each in committed))
        except KafkaException as error:
            log.warning("delivery_lag_unknown", error=error, action="tries again")

    def _offsets_behind(self, committed: TopicPartition) -> int:
        first, end = self._consumer.get_watermark_offsets(committed, timeout=_LAG_TIMEOUT)
        return max(0, end - max(first, committed.offset))
