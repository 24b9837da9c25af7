"""What `compose/kafka/topics.yaml` may say: topics, how much they keep, who writes and who reads."""

from pathlib import Path
from typing import Annotated

import msgspec

from services.provision.declaration import Problem, load_declaration, refuse_first, repeated

RETENTION = "retention.ms"
_MILLISECONDS_AN_HOUR = 3_600_000

TopicName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9._-]{1,249}$")]
UserName = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9-]{0,47}$")]
GroupPrefix = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9._-]{1,100}$")]


class Reader(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A user that may read, and how the names of its consumer groups begin."""

    user: UserName
    groups: GroupPrefix


class TopicSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One topic; `config` has further settings of Kafka's, what is in neither is the broker's default."""

    name: TopicName
    partitions: Annotated[int, msgspec.Meta(ge=1, le=10_000)]
    retention_hours: Annotated[int, msgspec.Meta(ge=1, le=87_600)]
    replicas: Annotated[int, msgspec.Meta(ge=1, le=100)] = 1
    config: dict[str, str | int | bool] = {}
    writers: tuple[UserName, ...] = ()
    readers: tuple[Reader, ...] = ()
    observers: tuple[UserName, ...] = ()

    @property
    def settings(self) -> dict[str, str]:
        """All of Kafka's settings that are not the broker's default, as Kafka writes them."""
        texts = {
            key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in self.config.items()
        }
        return {RETENTION: str(self.retention_hours * _MILLISECONDS_AN_HOUR), **texts}


class DeclaredTopics(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole of the file."""

    topics: Annotated[tuple[TopicSpec, ...], msgspec.Meta(min_length=1)]


def load_topics(path: Path) -> DeclaredTopics:
    """Read and check the file.

    Raises:
        ContractError: a key is unknown or a value is impossible; names file and line.
    """
    declared, document = load_declaration(path, DeclaredTopics)
    refuse_first(repeated([topic.name for topic in declared.topics], "$.topics[{index}].name"), document)
    refuse_first(_retention_said_twice(declared), document)
    return declared


def _retention_said_twice(declared: DeclaredTopics) -> list[Problem]:
    return [
        (f"$.topics[{index}].config.{RETENTION}", f"{RETENTION} is what retention_hours says; remove it from config")
        for index, topic in enumerate(declared.topics)
        if RETENTION in topic.config
    ]
