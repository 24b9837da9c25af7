"""Kafka's topics with their partitions and settings; records, and offsets of consumer groups, are not among it.

The streams keep their offsets in the lakehouse, and access rules are made from compose/kafka/topics.yaml.
"""

from pathlib import Path

import msgspec

from gamelake.errors import BackupError
from gamelake.kafka import KafkaAccess
from services.provision.declared_topics import TopicSpec
from services.provision.errors import ServiceRefusedError, ServiceSilentError
from services.provision.kafka import Kafka

_RETENTION = "retention.ms"
_HOUR = 3_600_000


class SavedTopic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic, and those of its settings that are not the broker's."""

    name: str
    partitions: int
    settings: dict[str, str]


class TopicsPart:
    """The topics of a Kafka."""

    name = "topics"
    file = "topics.json"

    def __init__(self, access: KafkaAccess) -> None:
        self._kafka = Kafka(access)

    def save(self, folder: Path) -> None:
        """Write them down.

        Raises:
            BackupError: Kafka gives no answer, or refuses.
        """
        try:
            topics = [
                SavedTopic(name=name, partitions=count, settings=self._kafka.settings(name))
                for name, count in sorted(self._kafka.partitions().items())
            ]
        except (ServiceSilentError, ServiceRefusedError) as error:
            raise BackupError(str(error)) from error
        (folder / self.file).write_bytes(msgspec.json.format(msgspec.json.encode(topics)))

    def is_empty(self) -> bool:
        """Always: a topic that is there is left alone."""
        return True

    def put_back(self, folder: Path) -> str:
        """Make the topics that are not there.

        Raises:
            BackupError: Kafka gives no answer, or refuses.
        """
        saved = msgspec.json.decode((folder / self.file).read_bytes(), type=list[SavedTopic])
        try:
            there = self._kafka.partitions()
            missing = [topic for topic in saved if topic.name not in there]
            for topic in missing:
                self._kafka.create_topic(_as_declared(topic))
        except (ServiceSilentError, ServiceRefusedError) as error:
            raise BackupError(str(error)) from error
        return f"{len(missing)} topics made, {len(saved) - len(missing)} are there"


def _as_declared(topic: SavedTopic) -> TopicSpec:
    config: dict[str, str | int | bool] = {**topic.settings}
    hours = int(config.pop(_RETENTION, 168 * _HOUR)) // _HOUR
    return TopicSpec(name=topic.name, partitions=topic.partitions, retention_hours=max(hours, 1), config=config)
