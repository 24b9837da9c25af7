"""Kafka's admin API: topics, their settings and access rules."""

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined] # its stubs do not export all of them
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from confluent_kafka.cimpl import NewTopic  # the stubs of `admin` do not export it

from gamelake.kafka import KafkaAccess
from gamelake.model.credentials import ServerCredentials
from services.provision.access_rules import ANY_RULE, AccessRule
from services.provision.declarations import TopicSpec
from services.provision.provisioning import ServiceRefusedError, ServiceUnavailableError

ANSWER = timedelta(seconds=30)
FIRST_ANSWER = timedelta(seconds=5)
_INTERNAL = "__"
# Kafka's default. More would make guessing slower, which passwords of 192 random bits do not need.
_ITERATIONS = 4_096
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FoundTopic:
    """A topic as Kafka has it; `settings` are those that differ from the broker's defaults."""

    partitions: int
    settings: Mapping[str, str]


class KafkaAdmin:
    """Reads and changes the topics and access rules of a Kafka."""

    def __init__(self, access: KafkaAccess) -> None:
        self._refused: KafkaError | None = None
        # librdkafka prints a line for every attempt; authentication errors come to the callback.
        settings: dict[str, Any] = {**access.for_clients(), "error_cb": self._on_error, "log_level": 0}
        self._address = access.bootstrap_servers
        self._admin = AdminClient(settings)

    def partitions(self) -> dict[str, int]:
        """Return all topics except Kafka's internal ones, with their number of partitions.

        Raises:
            ServiceUnavailableError: Kafka is not available.
            ServiceRefusedError: wrong user or password.
        """
        try:
            topics = self._admin.list_topics(timeout=FIRST_ANSWER.total_seconds()).topics
        except KafkaException as error:
            self._admin.poll(0)  # calls the callback
            if self._refused is not None:
                raise ServiceRefusedError(
                    "Kafka refuses the admin's credentials: if compose/secrets/kafka-admin is new, 'make down' and"
                    f" 'make up' start Kafka with it; its error: {self._refused.str()}"
                ) from error
            raise ServiceUnavailableError(f"Kafka at {self._address} does not respond") from error
        return {name: len(topic.partitions) for name, topic in topics.items() if not name.startswith(_INTERNAL)}

    def settings(self, topic: str) -> dict[str, str]:
        """Return the settings of a topic that differ from the broker's defaults."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        (answer,) = self._admin.describe_configs([resource]).values()
        entries: Mapping[str, ConfigEntry] = _result(answer, f"show the settings of {topic}")
        own = ConfigSource.DYNAMIC_TOPIC_CONFIG
        return {name: str(entry.value) for name, entry in entries.items() if ConfigSource(entry.source) is own}

    def create_topic(self, topic: TopicSpec) -> None:
        """Create a topic; one that exists meanwhile is not changed."""
        new = NewTopic(
            topic.name,
            num_partitions=topic.partitions,
            replication_factor=topic.replicas,
            config=topic.settings,
        )
        (answer,) = self._admin.create_topics([new], operation_timeout=ANSWER.total_seconds()).values()
        _result(answer, f"create the topic {topic.name}")

    def add_partitions(self, topic: TopicSpec) -> None:
        """Add partitions up to the declared number."""
        (answer,) = self._admin.create_partitions([NewPartitions(topic.name, topic.partitions)]).values()
        _result(answer, f"add partitions to {topic.name}")

    def alter_settings(self, topic: str, changed: Mapping[str, str], reset: Iterable[str]) -> None:
        """Set some of a topic's settings, and reset others to the broker's defaults."""
        entries = [_entry(name, value, AlterConfigOpType.SET) for name, value in changed.items()]
        entries += [_entry(name, None, AlterConfigOpType.DELETE) for name in reset]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        (answer,) = self._admin.incremental_alter_configs([resource]).values()
        _result(answer, f"change the settings of {topic}")

    def users(self) -> frozenset[str]:
        """Return the names of all users that have a password."""
        found: Mapping[str, Any] = _result(self._admin.describe_user_scram_credentials(), "show its users")  # type: ignore[arg-type] # one future for all users
        return frozenset(found)

    def set_password(self, user: ServerCredentials) -> None:
        """Set a user's password, and create the user where there is none; open connections stay as they are."""
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, _ITERATIONS)
        change = UserScramCredentialUpsertion(user.username, info, user.password.encode())
        (answer,) = self._admin.alter_user_scram_credentials([change]).values()
        _result(answer, f"set the password of {user.username}")

    def remove_password(self, name: str) -> None:
        """Remove a user's password, so that no client can connect as this user any more."""
        change = UserScramCredentialDeletion(name, ScramMechanism.SCRAM_SHA_512)
        (answer,) = self._admin.alter_user_scram_credentials([change]).values()
        _result(answer, f"remove the password of {name}")

    def rules(self) -> frozenset[AccessRule]:
        """Return all access rules that Kafka has."""
        bindings = _result(self._admin.describe_acls(ANY_RULE), "show its access rules")
        return frozenset(AccessRule.of(binding) for binding in bindings)

    def add_rule(self, rule: AccessRule) -> None:
        """Create a rule; idempotent."""
        (answer,) = self._admin.create_acls([rule.as_binding()]).values()
        _result(answer, f"create the rule that {rule}")

    def remove_rule(self, rule: AccessRule) -> None:
        """Remove a rule; idempotent."""
        (answer,) = self._admin.delete_acls([rule.as_filter()]).values()
        _result(answer, f"remove the rule that {rule}")

    def _on_error(self, error: KafkaError) -> None:
        if error.code() == KafkaError._AUTHENTICATION:  # noqa: SLF001 - librdkafka's own codes are spelt so
            self._refused = error


def _entry(name: str, value: str | None, operation: AlterConfigOpType) -> ConfigEntry:
    return ConfigEntry(name, value, incremental_operation=operation)


def _result(answer: "Future[Any]", what: str) -> Any:  # noqa: ANN401 - each call has its own type of result
    try:
        return answer.result(ANSWER.total_seconds())
    except KafkaException as failure:
        error: KafkaError = failure.args[0]
        if error.code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return None
        if error.retriable() or error.code() in {KafkaError._TIMED_OUT, KafkaError._TRANSPORT}:  # noqa: SLF001 - as above
            raise ServiceUnavailableError(f"Kafka did not {what}: {error.str()}; run this again") from failure
        raise ServiceRefusedError(f"Kafka refuses to {what}: {error.str()}") from failure
