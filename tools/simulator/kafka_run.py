"""A run to Kafka without the gateway: an idempotent producer, and events in all versions of the contract."""

import os
import threading
from collections.abc import Mapping
from datetime import timedelta

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from gamelake.kafka import KafkaAccess, kafka_access
from gamelake.model.environment import Environment
from gamelake.model.errors import TransientError
from gamelake.schemas.event_schemas import load_schemas, register, registry_writer
from tools.simulator.cli import KafkaTarget, SimulatorOptions
from tools.simulator.encoding import KafkaRecordEncoder
from tools.simulator.ledger import KafkaLedger, KafkaLedgerBuilder
from tools.simulator.pacing import Pacer, ProgressLine, events_per_step
from tools.simulator.sessions import BLOCK_SLOTS
from tools.simulator.spec import TrafficSpec
from tools.simulator.traffic import TrafficBatch, TrafficGenerator

_MAX_QUEUED = 200_000
_POLL_SECONDS = 0.005
_CONNECT_SECONDS = 15
# Long enough for a broker to restart.
_PATIENCE = timedelta(seconds=120)

_PRODUCER_SETTINGS: Mapping[str, str | int | bool] = {
    "enable.idempotence": True,
    "acks": "all",
    "compression.type": "lz4",
    "linger.ms": 20,
    "batch.size": 1_000_000,
    "batch.num.messages": 50_000,
    "queue.buffering.max.messages": 2 * _MAX_QUEUED,
    "queue.buffering.max.kbytes": 512 * 1024,
    # The number of successes follows from the failures; a callback per success costs more than sending.
    "delivery.report.only.error": True,
    "message.timeout.ms": int(_PATIENCE.total_seconds() * 1000),
    # Errors are raised; the rest of librdkafka's log is a line for every attempt to connect.
    "log_level": 2,
}


class DeliveryError(TransientError):
    """Kafka did not confirm every record."""


class KafkaSender:
    """Sends batches of records to one topic, in order.

    Raises:
        DeliveryError: Kafka does not answer.
    """

    def __init__(self, *, kafka: KafkaAccess, topic: str) -> None:
        self._topic = topic
        self.sent = 0
        self._failed = 0
        self._reason: KafkaError | None = None
        self._producer = Producer({**_PRODUCER_SETTINGS, **kafka.for_clients()})
        try:
            self._producer.list_topics(timeout=_CONNECT_SECONDS)
        except KafkaException as error:
            raise DeliveryError(f"Kafka at {kafka.bootstrap_servers} does not answer: {error}") from error

    def send(self, batch: TrafficBatch) -> None:
        """Queue the records of a batch, waiting while the producer's queue is full.

        Raises:
            DeliveryError: Kafka rejected records.
        """
        self._wait_for_capacity(len(batch.keys))
        records = [
            {"key": key, "value": value}
            for key, value in zip(batch.keys.to_pylist(), batch.values.to_pylist(), strict=True)
        ]
        queued = self._producer.produce_batch(self._topic, records, on_delivery=self._on_failure)
        self.sent += queued
        if queued < len(records):
            raise DeliveryError(f"the producer queued {queued} of {len(records)} records")
        self._producer.poll(0)
        self._raise_failures()

    def finish(self, patience: timedelta = _PATIENCE) -> int:
        """Flush the producer; returns the number of records that Kafka has confirmed."""
        unanswered = self._producer.flush(patience.total_seconds())
        return self.sent - self._failed - unanswered

    def _wait_for_capacity(self, records: int) -> None:
        # If the queue refused a record, the next record of its player would overtake it.
        while len(self._producer) and len(self._producer) + records > _MAX_QUEUED:
            self._producer.poll(_POLL_SECONDS)
            self._raise_failures()

    def _on_failure(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failed += 1
            self._reason = error

    def _raise_failures(self) -> None:
        if self._failed:
            raise DeliveryError(f"Kafka rejected {self._failed} records: {self._reason}")


class KafkaRun:
    """Sends one run of traffic and records what Kafka has confirmed.

    Raises:
        RegistryUnavailableError: the schemas cannot be registered.
        DeliveryError: Kafka does not answer.
        SettingsError: a GAMELAKE_KAFKA_* or GAMELAKE_REGISTRY_* variable is malformed.
    """

    def __init__(self, options: SimulatorOptions, target: KafkaTarget, spec: TrafficSpec) -> None:
        schemas = load_schemas(options.contracts, options.versions)
        variables = Environment({**os.environ, "GAMELAKE_BOOTSTRAP_SERVERS": target.bootstrap_servers})
        writer = registry_writer(variables)
        ids = register(schemas, registry_url=target.registry_url, topic=target.topic, writer=writer)
        self._options = options
        self._traffic = TrafficGenerator(
            spec, [KafkaRecordEncoder(schema, number) for schema, number in zip(schemas, ids, strict=True)]
        )
        self._sender = KafkaSender(kafka=kafka_access(variables), topic=target.topic)
        self._ledger = KafkaLedgerBuilder(spec)

    def send(self, stop: threading.Event) -> None:
        """Send all events, until stopped.

        Raises:
            DeliveryError: Kafka rejected records.
        """
        rate = self._options.rate
        pacer = Pacer(rate, stop) if rate else None
        progress = ProgressLine(self._options.events)
        for batch in self._traffic.batches(events_per_step(rate) if rate else BLOCK_SLOTS):
            self._sender.send(batch)
            self._ledger.add(batch.events, records=len(batch.values), value_bytes=batch.value_bytes)
            progress.advance(len(batch.events))
            if pacer:
                pacer.wait_after(len(batch.events))
            if stop.is_set():
                break
        progress.close()

    def finish(self) -> KafkaLedger:
        """Flush the producer, and sum up the run."""
        return self._ledger.build(acked=self._sender.finish())

    def check(self, ledger: KafkaLedger) -> None:
        """Check that Kafka confirmed every record.

        Raises:
            DeliveryError: it did not.
        """
        if ledger.acked != ledger.sent:
            raise DeliveryError(f"Kafka confirmed {ledger.acked} of {ledger.sent} records")
