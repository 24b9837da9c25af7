"""A folder in which files of events arrive, and their notifications."""

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from gamelake.streaming.files.arrivals.changes import ObjectChange, key_of, value_of
from services.notifier.folder import Folder
from tests.embedded.lakehouse import Lakehouse
from tests.embedded.sending import contract_text


@dataclass
class Landing:
    """A folder next to a lakehouse, and a topic of notifications."""

    lakehouse: Lakehouse
    topic: str

    def __post_init__(self) -> None:
        """Set the variables of the lakehouse's jobs, and register the contract's schema."""
        self.path = self.lakehouse.directory / "landing"
        self.folder = Folder(self.path)
        self._producer = Producer({"bootstrap.servers": self.lakehouse.bootstrap_servers, "acks": "all"})
        self.lakehouse.settings |= {
            "GAMELAKE_LANDING": f"file://{self.path}",
            "GAMELAKE_NOTIFICATIONS_TOPIC": self.topic,
        }
        with SchemaRegistryClient({"url": self.lakehouse.registry_url}) as registry:
            registry.register_schema(f"{self.lakehouse.topic}-value", Schema(contract_text(3), "PROTOBUF"))

    def write(self, key: str, content: bytes) -> Path:
        """Write a file atomically, as an object store does, without a notification."""
        path = self.path / key
        path.parent.mkdir(parents=True, exist_ok=True)
        hidden = path.with_name(f".{path.name}")
        hidden.write_bytes(content)
        return hidden.rename(path)

    def notify(self, *keys: str) -> None:
        """Send notifications of files as they are now."""
        changes = [self.folder.change(key) for key in keys]
        self.say(*(change for change in changes if change is not None))

    def say(self, *changes: ObjectChange) -> None:
        self.send([(key_of(change), value_of(change)) for change in changes])

    def send(self, messages: Sequence[tuple[bytes, bytes]]) -> None:
        """Send raw notifications, and wait for Kafka's acknowledgement."""
        for key, value in messages:
            self._producer.produce(self.topic, value, key)
        assert self._producer.flush(60) == 0

    def deliver(self, key: str, content: bytes) -> None:
        """Write a file and send its notification."""
        self.write(key, content)
        self.notify(key)

    def removed(self, key: str) -> ObjectChange:
        return ObjectChange(bucket=self.path.name, key=key, moment=datetime.now(UTC), event="s3:ObjectRemoved:Delete")


def an_event(event_id: str, game_name: str, **fields: object) -> dict[str, object]:
    """An event in JSON that happens now."""
    event = {"event_id": event_id, "event_name": "level_completed", "game_name": game_name}
    return {**event, "event_time": datetime.now(UTC).isoformat(), **fields}


def events(count: int, game_name: str, **fields: object) -> tuple[list[str], bytes]:
    """A number of events, one line each, and their ids."""
    ids = [str(uuid.uuid4()) for _ in range(count)]
    lines = (json.dumps(an_event(event_id, game_name, **fields)) for event_id in ids)
    return ids, "".join(f"{line}\n" for line in lines).encode()
