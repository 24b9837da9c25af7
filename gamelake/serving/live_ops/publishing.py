"""Publishes rows to a topic as Protobuf in a Confluent frame, and waits until Kafka has acknowledged all of them."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from ptars import HandlerPool, PtarsConfig

from gamelake.model.errors import KafkaUnavailableError
from gamelake.model.worker_cache import per_worker
from gamelake.schemas.compiler import message_at
from gamelake.schemas.event_schemas import FIRST_MESSAGE
from gamelake.schemas.framing import frame_header
from gamelake.serving.live_ops.plan import Publication

_CONFIG = PtarsConfig(timestamp_unit="us", timestamp_tz="UTC", enum_repr="string")
_PATIENCE_SECONDS = 60
_AT_ONCE = 50_000
_SETTINGS: dict[str, str | int | bool] = {
    "enable.idempotence": True,
    "acks": "all",
    "compression.type": "lz4",
    "linger.ms": 5,
    "queue.buffering.max.messages": 4 * _AT_ONCE,
    "delivery.report.only.error": True,
    "message.timeout.ms": _PATIENCE_SECONDS * 1000,
    # Delivery failures are reported as errors, so the client's log adds nothing.
    "log_level": 2,
}


class Publisher:
    """Publishes to one topic. One thread uses it at a time.

    Args:
        publication: the topic, its schema, and how to reach Kafka.
    """

    def __init__(self, publication: Publication) -> None:
        message = message_at(FileDescriptorSet.FromString(publication.descriptors), FIRST_MESSAGE)
        self._handler = HandlerPool([message.file], config=_CONFIG).get_for_message(message)
        self._header = pa.scalar(frame_header(publication.schema_id), pa.binary())
        self._topic = publication.topic
        self._settings: dict[str, Any] = {**_SETTINGS, **publication.kafka.for_clients()}
        self._producer = Producer(self._settings)
        self._failure: KafkaError | None = None

    def publish(self, keys: pa.Array, rows: pa.Table) -> None:
        """Send one value for each key, and return after Kafka has acknowledged all of them.

        Args:
            keys: binary, one for each of `rows`.
            rows: the message's fields as columns; timestamps in UTC microseconds, enums as strings.

        Raises:
            KafkaUnavailableError: Kafka did not acknowledge all of them.
        """
        for start in range(0, len(keys), _AT_ONCE):
            part = rows.slice(start, _AT_ONCE).combine_chunks()
            self._send(keys.slice(start, _AT_ONCE), self.encode(part).to_pylist())

    def forget(self, keys: pa.Array) -> None:
        """Send tombstones for keys (binary), in order.

        Raises:
            KafkaUnavailableError: Kafka did not acknowledge all of them.
        """
        self._send(keys, [None] * len(keys))

    def encode(self, rows: pa.Table) -> pa.Array:
        """Encode rows (the message's fields as columns) as values (binary, one per row, in order); send nothing."""
        schema = self._handler.schema()
        columns = [rows[field.name].combine_chunks().cast(field.type) for field in schema]
        batch = pa.RecordBatch.from_arrays(columns, schema=schema)
        bodies = self._handler.record_batch_to_array(batch)
        return pc.binary_join_element_wise(self._header, bodies, pa.scalar(b"", pa.binary()))

    def _send(self, keys: pa.Array, values: Sequence[bytes | None]) -> None:
        records: list[Any] = [{"key": key, "value": value} for key, value in zip(keys.to_pylist(), values, strict=True)]
        if not records:
            return
        queued = self._producer.produce_batch(self._topic, records, on_delivery=self._on_failure)
        try:
            left = self._producer.flush(_PATIENCE_SECONDS)
        except KafkaException as error:
            # A fatal error: this producer can't send anything any longer.
            self._producer = Producer(self._settings)
            raise KafkaUnavailableError(f"Kafka refused the values published to '{self._topic}': {error}") from error
        failure, self._failure = self._failure, None
        if queued < len(records) or left or failure:
            raise KafkaUnavailableError(
                f"Kafka did not acknowledge all values published to '{self._topic}': {failure or 'timed out'}"
            )

    def _on_failure(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failure = error


def worker_publisher(publication: Publication) -> Publisher:
    """Return this process's publisher for a topic, which connects at the first call."""
    return per_worker(Publisher, publication, lambda: Publisher(publication))


def player_keys(games: pa.Array, gamer_ids: pa.Array) -> pa.Array:
    """Build the topic's keys of players: `game/pseudonym` (binary), one for each pair of the two string arrays."""
    return pc.binary_join_element_wise(games, gamer_ids, "/").cast(pa.binary())
