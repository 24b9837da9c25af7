"""Hands one record to Kafka and learns where it stands there."""

from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from services.smoke.errors import StepFailedError
from services.smoke.event import SmokeEvent
from services.smoke.journey import NEXT_COMMANDS, Step
from services.smoke.settings import SmokeSettings

_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Coordinates:
    """Where a record stands."""

    topic: str
    partition: int
    offset: int


class _Delivery:
    """What Kafka says of one record, and of whoever brings it."""

    def __init__(self) -> None:
        self.coordinates: Coordinates | None = None
        self.problem: str | None = None

    def on_delivery(self, error: KafkaError | None, message: Message) -> None:
        """Called once, with the end of the attempts."""
        if error is not None:
            self.problem = self.problem or error.str()
        else:
            self.coordinates = Coordinates(
                str(message.topic()), int(message.partition() or 0), int(message.offset() or 0)
            )

    def on_error(self, error: KafkaError) -> None:
        """Called with what goes wrong meanwhile; wrong credentials are never tried to an end."""
        if error.code() == KafkaError._AUTHENTICATION:  # noqa: SLF001 - librdkafka's own codes are spelt so
            self.problem = error.str()


def send(event: SmokeEvent, settings: SmokeSettings, seconds: float) -> Coordinates:
    """Send the event and return when Kafka has acknowledged it.

    Raises:
        StepFailedError: it did not within so many seconds, or refused it.
    """
    delivery = _Delivery()
    client: dict[str, Any] = {
        **settings.kafka.for_clients(),
        "acks": "all",
        "enable.idempotence": True,
        "message.timeout.ms": int(seconds * 1000),
        "error_cb": delivery.on_error,
        "log_level": 0,
    }
    producer = Producer(client)
    producer.produce(settings.topic, event.value, event.key, on_delivery=delivery.on_delivery)
    while delivery.coordinates is None and delivery.problem is None:
        producer.poll(_POLL_SECONDS)
    if delivery.coordinates is None:
        producer.purge()
        problem = f"{settings.kafka.bootstrap_servers} did not take the record: {delivery.problem}"
        raise StepFailedError(Step.ACKNOWLEDGED, problem, NEXT_COMMANDS[Step.ACKNOWLEDGED])
    return delivery.coordinates
