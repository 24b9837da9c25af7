"""Events as a game's SDK would send them, and the ledger of sent events."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import MappingProxyType

from confluent_kafka import Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from gamelake.model.credentials import ServerCredentials
from gamelake.schemas.compiler import ROOT_FILE, compile_sources, message_at

ANY_PLAYER = "a" * 32
PROTO = Path(__file__).parents[2] / "contracts" / "proto"


def contract_text(version: int) -> str:
    """The source of one version of the game event."""
    return (PROTO / f"v{version}" / "game_event.proto").read_text()


@cache
def event_class(source: str) -> type[Message]:
    """The message class of a schema's first message."""
    return GetMessageClass(message_at(compile_sources({ROOT_FILE: source}), (0,)))


@dataclass(slots=True)
class Ledger:
    """What was sent: ids of events that must become rows, records that must be dead letters, records sent once more."""

    event_ids: list[str] = field(default_factory=list)
    bad: int = 0
    sent_again: int = 0


class Sender:
    """Sends to one topic; every call waits for Kafka's acknowledgement."""

    def __init__(
        self,
        bootstrap_servers: str,
        registry_url: str,
        topic: str,
        client: Mapping[str, str | int] = MappingProxyType({}),
        writer: ServerCredentials | None = None,
    ) -> None:
        settings = {"bootstrap.servers": bootstrap_servers, "acks": "all", "enable.idempotence": True}
        self._producer = Producer(settings | dict(client))
        self._registry = {"url": registry_url}
        if writer is not None:
            self._registry["basic.auth.user.info"] = f"{writer.username}:{writer.password}"
        self._topic = topic
        self.ledger = Ledger()
        self._last: Sequence[bytes] = ()

    def register(self, source: str) -> int:
        """Register a schema under its own subject, where no compatibility rule can reject it."""
        with SchemaRegistryClient(self._registry) as registry:
            return int(registry.register_schema(f"{self._topic}-{uuid.uuid4().hex}", Schema(source, "PROTOBUF")))

    def send_events(self, count: int, game_name: str, source: str | None = None, **fields: object) -> list[str]:
        """Send good events. Return their ids."""
        source = source or contract_text(1)
        schema_id = self.register(source)
        ids = [str(uuid.uuid4()) for _ in range(count)]
        self.send_values(ids, [framed(schema_id, an_event(source, event_id, game_name, **fields)) for event_id in ids])
        return ids

    def send_values(self, ids: Sequence[str], values: Sequence[bytes]) -> None:
        """Send good events that are encoded already."""
        self._send(values)
        self._last = values
        self.ledger.event_ids += ids

    def send_again(self) -> None:
        """Send the last good events once more, under the same keys, as a client without a response does."""
        self._send(self._last)
        self.ledger.sent_again += len(self._last)

    def send_bad(self, values: Sequence[bytes | None]) -> None:
        """Send values that must become dead letters."""
        self._send(values)
        self.ledger.bad += len(values)

    def _send(self, values: Sequence[bytes | None]) -> None:
        failures: list[object] = []
        for number, value in enumerate(values):
            key = str(number % 100).encode()
            self._producer.produce(
                self._topic, value, key, on_delivery=lambda error, _: failures.append(error) if error else None
            )
            self._producer.poll(0)
        self._producer.flush(60)
        assert not failures


def an_event(source: str, event_id: str, game_name: str, **fields: object) -> Message:
    """A plausible event that happens now, or at the datetime `event_time`."""
    happened = fields.pop("event_time", datetime.now(UTC))
    event = event_class(source)(event_id=event_id, event_name="level_completed", game_name=game_name, **fields)
    event.event_time.FromDatetime(happened)  # type: ignore[attr-defined]
    # With rules, an event without a player is quarantined.
    if "gamer_id" in event.DESCRIPTOR.fields_by_name and "gamer_id" not in fields:
        event.gamer_id = ANY_PLAYER  # type: ignore[attr-defined]
    return event


def framed(schema_id: int, event: Message) -> bytes:
    """The event as a Kafka value."""
    return b"\x00" + schema_id.to_bytes(4, "big") + b"\x00" + event.SerializeToString()
