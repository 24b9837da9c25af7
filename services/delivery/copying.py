"""From the topic to files: an offset is committed once the file that has its record is there.

So nothing is left out, and after a crash some files are written again under the same names, with the same events or
more; who reads them knows events by their ids.
"""

import logging
import time
from threading import Event

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from gamelake.errors import KafkaUnavailableError
from gamelake.lake.store import Store
from gamelake.telemetry.heartbeat import Heartbeat
from services.delivery.parcel import Parcel
from services.delivery.settings import DeliverySettings

log = logging.getLogger(__name__)

_AT_ONCE = 2_000
_LOOK_SECONDS = 0.2
# Beside size and time, as a compressor holds back what it was given: so much of it at most.
_MOST_EVENTS = 500_000


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
