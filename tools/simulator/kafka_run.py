"""Parcels to Kafka: idempotent, and with an account of what Kafka has confirmed."""

import threading
from collections.abc import Mapping
from datetime import timedelta

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from gamelake.kafka import KafkaAccess
from gamelake.model.errors import TransientError
from gamelake.schemas.event_schemas import load_schemas, register
from tools.simulator.cli import KafkaTarget, Options
from tools.simulator.encoding import Encoder
from tools.simulator.ledger import Bookkeeper, Ledger
from tools.simulator.pacing import Pacer, ProgressLine, events_per_step
from tools.simulator.sessions import BLOCK_SEATS
from tools.simulator.spec import TrafficSpec
from tools.simulator.traffic import Parcel, Traffic

_MAX_QUEUED = 200_000
_POLL_SECONDS = 0.005
_FIRST_ANSWER_SECONDS = 15
# Long enough for a broker to be started again.
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
    # Successes are what is left when the failures are known; a callback for each of them costs more than sending.
    "delivery.report.only.error": True,
    "message.timeout.ms": int(_PATIENCE.total_seconds() * 1000),
    # What matters in librdkafka's own log comes back as an error; the rest is a line for every attempt to connect.
    "log_level": 2,
}


class DeliveryError(TransientError):
    """Kafka did not take every record."""


class KafkaSender:
    """Sends parcels to one topic, in order.

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
            self._producer.list_topics(timeout=_FIRST_ANSWER_SECONDS)
        except KafkaException as error:
            raise DeliveryError(f"Kafka at {kafka.bootstrap_servers} does not answer: {error}") from error

    def send(self, parcel: Parcel) -> None:
        """Hand a parcel to the producer, waiting while its queue is full.

        Raises:
            DeliveryError: Kafka has refused records for good.
        """
        self._wait_for_room(len(parcel.keys))
        records = [
            {"key": key, "value": value}
            for key, value in zip(parcel.keys.to_pylist(), parcel.values.to_pylist(), strict=True)
        ]
        queued = self._producer.produce_batch(self._topic, records, on_delivery=self._on_failure)
        self.sent += queued
        if queued < len(records):
            raise DeliveryError(f"the producer took {queued} of {len(records)} records")
        self._producer.poll(0)
        self._raise_failures()

    def finish(self, patience: timedelta = _PATIENCE) -> int:
        """Wait until Kafka has answered for every record, and give the number that it has confirmed."""
        unanswered = self._producer.flush(patience.total_seconds())
        return self.sent - self._failed - unanswered

    def _wait_for_room(self, records: int) -> None:
        # A record that the full queue refuses would be overtaken by the next one of its player.
        while len(self._producer) and len(self._producer) + records > _MAX_QUEUED:
            self._producer.poll(_POLL_SECONDS)
            self._raise_failures()

    def _on_failure(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failed += 1
            self._reason = error

    def _raise_failures(self) -> None:
        if self._failed:
            raise DeliveryError(f"Kafka refused {self._failed} records: {self._reason}")


class KafkaRun:
    """Sends one run of traffic, and keeps the account of what Kafka has confirmed.

    Raises:
        RegistryUnavailableError: the registry took no schema.
        DeliveryError: Kafka does not answer.
    """

    def __init__(self, options: Options, target: KafkaTarget, spec: TrafficSpec) -> None:
        schemas = load_schemas(options.contracts, options.versions)
        ids = register(schemas, registry_url=target.registry_url, topic=target.topic)
        self._options = options
        self._traffic = Traffic(spec, [Encoder(schema, number) for schema, number in zip(schemas, ids, strict=True)])
        self._sender = KafkaSender(
            kafka=KafkaAccess.of(target.bootstrap_servers, target.credentials_file), topic=target.topic
        )
        self._books = Bookkeeper(spec)

    def send(self, stop: threading.Event) -> None:
        """Send all events.

        Raises:
            DeliveryError: Kafka has refused records for good.
        """
        rate = self._options.rate
        pacer = Pacer(rate, stop) if rate else None
        progress = ProgressLine(self._options.events)
        for parcel in self._traffic.parcels(events_per_step(rate) if rate else BLOCK_SEATS):
            self._sender.send(parcel)
            self._books.note(parcel.moments, records=len(parcel.values), value_bytes=parcel.value_bytes)
            progress.advance(len(parcel.moments))
            if pacer:
                pacer.wait_after(len(parcel.moments))
            if stop.is_set():
                break
        progress.close()

    def finish(self) -> Ledger:
        """Wait until Kafka has answered for every record, and close the accounts."""
        return self._books.ledger(acked=self._sender.finish())

    def check(self, ledger: Ledger) -> None:
        """See whether Kafka has everything.

        Raises:
            DeliveryError: it has not.
        """
        if ledger.acked != ledger.sent:
            raise DeliveryError(f"Kafka confirmed {ledger.acked} of {ledger.sent} records")
