"""Kafka and the registry brought in line with their files, on the stack's own Kafka and a real registry."""

import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from gamelake.model.credentials import ServerCredentials
from services.provision.kafka import KafkaAdmin
from tests.embedded.secured_kafka import USERS, SecuredKafka
from tests.embedded.sending import contract_text
from tools.embedded import EmbeddedRegistry
from tools.embedded.process import ServiceMissingError

ROOT = Path(__file__).parents[2]
HOUR_MS = 3_600_000
AS_THE_SIMULATOR = {"enable.idempotence": True, "acks": "all"}
# An idempotent producer without rights ends before Kafka has refused its record.
ANONYMOUS = {"acks": "all"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a program, and its output."""

    exit_code: int
    lines: list[str]
    errors: str


def provision(what: str, **variables: str) -> Outcome:
    """Run one of the programs as a process."""
    command = (sys.executable, "-m", f"services.provision.{what}")
    environment = {**os.environ, "PROVISION_PATIENCE_SECONDS": "20", **variables}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    return Outcome(done.returncode, done.stdout.splitlines(), done.stderr)


@pytest.fixture(scope="module")
def secured(
    tmp_path_factory: pytest.TempPathFactory, missing_service: Callable[[str], NoReturn]
) -> Iterator[SecuredKafka]:
    """The stack's Kafka, running."""
    kafka = SecuredKafka(tmp_path_factory.mktemp("secured"))
    try:
        kafka.start()
    except ServiceMissingError as error:
        missing_service(str(error))
    yield kafka
    kafka.stop()


@dataclass(frozen=True, slots=True)
class Topic:
    """A declared topic of a random name, in a file of its own, on the stack's Kafka."""

    name: str
    file: Path
    kafka: SecuredKafka

    def declare(self, text: str) -> Outcome:
        """Say what the topic should be, and bring Kafka in line."""
        self.file.write_text(f"topics:\n  - name: {self.name}\n{text}")
        return self.provision()

    def provision(self, **variables: str) -> Outcome:
        """Bring Kafka in line with the file."""
        given = {
            "GAMELAKE_BOOTSTRAP_SERVERS": self.kafka.bootstrap_servers,
            "GAMELAKE_KAFKA_CA_FILE": str(self.kafka.authority),
            "PROVISION_SECRETS": str(self.kafka.secrets),
            "PROVISION_TOPICS_FILE": str(self.file),
        }
        return provision("topics", **given | variables)

    def about_itself(self, outcome: Outcome) -> list[str]:
        """The lines that name the topic."""
        return [line for line in outcome.lines if self.name in line]

    @property
    def admin(self) -> KafkaAdmin:
        """A request to Kafka that needs no rule."""
        return KafkaAdmin(self.kafka.access("admin"))

    def write(self, user: str, acks: Mapping[str, Any] = AS_THE_SIMULATOR) -> KafkaError | None:
        """Why a record of a user's was not taken; None if it was."""
        errors: list[KafkaError | None] = []
        client: dict[str, Any] = {**self.kafka.access(user).for_clients(), **acks, "log_level": 0}
        producer = Producer(client | {"message.timeout.ms": 10_000})
        producer.produce(self.name, b"value", on_delivery=lambda error, _: errors.append(error))
        producer.flush(20)
        (error,) = errors
        return error

    def read(self, user: str, group: str = "spark-kafka-test") -> KafkaError | int | None:
        """The offset of the first record as a user gets it, or why it gets none."""
        client: dict[str, Any] = {**self.kafka.access(user).for_clients(), "group.id": group, "log_level": 0}
        consumer = Consumer(client | {"auto.offset.reset": "earliest", "enable.auto.commit": False})
        try:
            consumer.assign([TopicPartition(self.name, 0, 0)])
            message = consumer.poll(20)
            assert message is not None, "Kafka said nothing at all"
            return message.error() or message.offset()
        finally:
            consumer.close()


@pytest.fixture
def declared(secured: SecuredKafka, tmp_path: Path) -> Topic:
    """A topic that does not exist yet."""
    return Topic(f"test-{uuid.uuid4().hex}", tmp_path / "topics.yaml", secured)


A_TOPIC = "    partitions: 1\n    retention_hours: 24\n"


def test_a_topic_is_made_as_declared_and_a_second_run_changes_nothing(declared: Topic) -> None:
    first = declared.declare("    partitions: 3\n    retention_hours: 24\n    config: {cleanup.policy: delete}\n")
    second = declared.provision()

    assert first.exit_code == 0, first.errors
    assert declared.admin.partitions()[declared.name] == 3
    assert declared.admin.settings(declared.name) == {"retention.ms": str(24 * HOUR_MS), "cleanup.policy": "delete"}
    assert second.exit_code == 0
    assert second.lines[-1] == "topics: nothing to change"
    assert declared.about_itself(second) == []


def test_another_retention_in_the_file_is_applied_by_the_next_run(declared: Topic) -> None:
    declared.declare(A_TOPIC)

    outcome = declared.declare("    partitions: 1\n    retention_hours: 48\n")

    assert declared.about_itself(outcome) == [f"topics: {declared.name} has retention.ms={48 * HOUR_MS}"]
    assert declared.admin.settings(declared.name) == {"retention.ms": str(48 * HOUR_MS)}


def test_a_setting_that_the_file_says_no_more_is_the_brokers_own_again(declared: Topic) -> None:
    declared.declare(A_TOPIC + "    config: {retention.bytes: 1000000}\n")

    outcome = declared.declare(A_TOPIC)

    assert declared.about_itself(outcome) == [f"topics: {declared.name} has the broker's default retention.bytes"]
    assert "retention.bytes" not in declared.admin.settings(declared.name)


def test_partitions_are_added_and_never_removed(declared: Topic) -> None:
    declared.declare(A_TOPIC)

    more = declared.declare("    partitions: 4\n    retention_hours: 24\n")
    fewer = declared.declare("    partitions: 2\n    retention_hours: 24\n")

    assert declared.about_itself(more) == [f"topics: {declared.name} has 4 partitions instead of 1"]
    assert declared.admin.partitions()[declared.name] == 4
    assert fewer.exit_code == 0
    (skipped,) = declared.about_itself(fewer)
    assert skipped.startswith(f"topics: left alone: {declared.name} has 4 partitions, more than the 2 of the file")
    assert fewer.lines[-1] == "topics: nothing to change"


WRITERS_AND_READERS = "    writers: [simulator]\n    readers: [{user: ingest-events, groups: spark-kafka-}]\n"


def test_a_writer_writes_a_reader_reads_and_neither_does_the_others_part(declared: Topic) -> None:
    declared.declare(A_TOPIC + WRITERS_AND_READERS)

    assert declared.write("simulator") is None
    assert declared.read("ingest-events") == 0
    assert code_of(declared.write("ingest-events", ANONYMOUS)) == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert code_of(declared.read("simulator")) in REFUSALS


REFUSALS = {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED}


def code_of(error: KafkaError | int | None) -> int:
    assert isinstance(error, KafkaError), "nothing was refused"
    return error.code()


def test_who_is_not_listed_any_more_is_denied(declared: Topic) -> None:
    declared.declare(A_TOPIC + WRITERS_AND_READERS)
    assert declared.write("simulator") is None

    outcome = declared.declare(A_TOPIC)

    assert f"topics: removed: User:simulator may write on topic {declared.name}" in outcome.lines
    assert code_of(declared.write("simulator", ANONYMOUS)) == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert code_of(declared.read("ingest-events")) in REFUSALS


def test_a_topic_that_the_file_does_not_name_is_reported_and_left_alone(declared: Topic, tmp_path: Path) -> None:
    declared.declare(A_TOPIC)
    other = Topic(f"test-{uuid.uuid4().hex}", tmp_path / "others.yaml", declared.kafka)

    outcome = other.declare(A_TOPIC)

    assert f"topics: left alone: the topic {declared.name}, which the file does not name" in outcome.lines
    assert declared.name in declared.admin.partitions()


def test_a_setting_that_kafka_does_not_know_is_refused_with_the_file_to_correct(declared: Topic) -> None:
    outcome = declared.declare(A_TOPIC + "    config: {retention.byte: 1}\n")

    assert outcome.exit_code == 2
    assert "retention.byte" in outcome.errors
    assert f"correct {declared.file}" in outcome.errors


def test_a_wrong_password_is_reported_at_once_and_not_retried(declared: Topic, tmp_path: Path) -> None:
    declared.file.write_text(f"topics:\n  - name: {declared.name}\n{A_TOPIC}")
    wrong = tmp_path / "kafka-admin"
    wrong.write_text("username=admin\npassword=0123456789abcdef\n")

    outcome = declared.provision(PROVISION_SECRETS=str(tmp_path), PROVISION_PATIENCE_SECONDS="600")

    assert outcome.exit_code == 2
    assert "Kafka refuses the admin's credentials" in outcome.errors
    assert "0123456789abcdef" not in outcome.errors


def test_kafka_that_never_responds_ends_the_patience_at_the_next_attempt(declared: Topic) -> None:
    declared.file.write_text(f"topics:\n  - name: {declared.name}\n{A_TOPIC}")

    outcome = declared.provision(GAMELAKE_BOOTSTRAP_SERVERS="127.0.0.1:9", PROVISION_PATIENCE_SECONDS="1")

    assert outcome.exit_code == 4
    assert "make logs S=kafka" in outcome.errors


@pytest.mark.parametrize("has_password", [False, True], ids=["anonymous", "with the admin's password"])
@pytest.mark.parametrize("is_encrypted", [False, True], ids=["in the clear", "by TLS"])
def test_clients_connect_only_by_tls_and_with_a_password(
    secured: SecuredKafka, has_password: bool, is_encrypted: bool
) -> None:
    access = secured.access("admin")
    access = replace(
        access,
        credentials=access.credentials if has_password else None,
        authorities=access.authorities if is_encrypted else "",
    )
    client = Producer({**access.for_clients(), "log_level": 0})

    if has_password and is_encrypted:
        assert client.list_topics(timeout=20).brokers
    else:
        with pytest.raises(KafkaException):
            client.list_topics(timeout=5)


def test_a_client_that_does_not_trust_the_authority_does_not_connect(secured: SecuredKafka) -> None:
    client = Producer({**replace(secured.access("admin"), authorities="system").for_clients(), "log_level": 0})

    with pytest.raises(KafkaException):
        client.list_topics(timeout=5)


def test_a_new_password_counts_from_the_next_run_on_and_open_connections_stay(declared: Topic) -> None:
    declared.declare(A_TOPIC + WRITERS_AND_READERS)
    former = declared.kafka.access("simulator")
    producer = Producer({**former.for_clients(), **AS_THE_SIMULATOR, "log_level": 0})
    producer.produce(declared.name, b"value")
    assert producer.flush(20) == 0

    declared.kafka.change_password("simulator")
    assert code_of(declared.write("simulator")) == KafkaError._MSG_TIMED_OUT  # noqa: SLF001 - librdkafka's own code
    assert declared.provision().exit_code == 0

    assert declared.write("simulator") is None
    producer.produce(declared.name, b"value")
    assert producer.flush(20) == 0
    with pytest.raises(KafkaException):
        Producer({**former.for_clients(), "log_level": 0}).list_topics(timeout=5)


def test_a_user_without_a_secret_is_removed(declared: Topic) -> None:
    declared.declare(A_TOPIC)
    declared.admin.set_password(ServerCredentials("former", "0123456789abcdef"))

    outcome = declared.provision()

    assert "topics: removed the user former, which has no secret" in outcome.lines
    assert declared.admin.users() == set(USERS)


@pytest.mark.slow
def test_a_restarted_kafka_is_the_same_cluster_with_the_same_rules(declared: Topic) -> None:
    declared.declare(A_TOPIC + WRITERS_AND_READERS)
    assert declared.write("simulator") is None
    before = declared.kafka.cluster_id

    declared.kafka.stop()
    declared.kafka.start()

    assert declared.kafka.cluster_id == before
    assert declared.read("ingest-events") == 0
    assert declared.provision().lines[-1] == "topics: nothing to change"


@pytest.mark.parametrize(
    "reason", ["the secret is new", pytest.param("the data is older than SCRAM", marks=pytest.mark.slow)]
)
def test_a_restarted_kafka_takes_the_admins_password_from_the_secret(declared: Topic, reason: str) -> None:
    if reason == "the data is older than SCRAM":
        declared.kafka.forget_admin()
    else:
        declared.kafka.change_password("admin")
    declared.kafka.stop()
    declared.kafka.start()

    outcome = declared.declare(A_TOPIC)

    assert outcome.exit_code == 0, outcome.errors


@pytest.fixture
def subject(registry: EmbeddedRegistry) -> Iterator[str]:
    """A subject of a random name; what holds for others is as before after the test."""
    with SchemaRegistryClient({"url": registry.url}) as client:
        before = client.get_compatibility()
        yield f"test-{uuid.uuid4().hex}-value"
        client.set_compatibility(level=before)


@pytest.fixture
def client(registry: EmbeddedRegistry) -> Iterator[SchemaRegistryClient]:
    """A producer's view of the registry."""
    with SchemaRegistryClient({"url": registry.url}) as client:
        yield client


def declare_level(registry: EmbeddedRegistry, file: Path, text: str) -> Outcome:
    file.write_text(text)
    return provision("subjects", GAMELAKE_REGISTRY_URL=registry.url, PROVISION_SUBJECTS_FILE=str(file))


def test_levels_are_set_before_a_subject_is_there_and_a_second_run_changes_nothing(
    registry: EmbeddedRegistry, client: SchemaRegistryClient, subject: str, tmp_path: Path
) -> None:
    text = f"others: BACKWARD\nsubjects: [{{name: {subject}, compatibility: BACKWARD_TRANSITIVE}}]\n"

    first = declare_level(registry, tmp_path / "subjects.yaml", text)
    second = declare_level(registry, tmp_path / "subjects.yaml", text)

    assert first.lines[-1] == f"subjects: {subject} is BACKWARD_TRANSITIVE instead of without a level"
    assert second.lines == ["subjects: nothing to change"]
    assert second.errors == ""
    assert client.get_compatibility() == "BACKWARD"
    assert client.get_compatibility(subject) == "BACKWARD_TRANSITIVE"
    assert subject not in client.get_subjects()


def test_the_stacks_level_takes_the_contract_as_it_grew_and_no_field_of_another_type(
    registry: EmbeddedRegistry, client: SchemaRegistryClient, subject: str, tmp_path: Path
) -> None:
    stack = (ROOT / "compose" / "registry" / "subjects.yaml").read_text()
    assert "events-value" in stack
    declare_level(registry, tmp_path / "subjects.yaml", stack.replace("events-value", subject))

    for version in (1, 2, 3):
        client.register_schema(subject, Schema(contract_text(version), "PROTOBUF"))
    broken = contract_text(3).replace("string session_id = 7;", "int64 session_id = 7;")

    assert broken != contract_text(3)
    with pytest.raises(SchemaRegistryError, match="Incompatible"):
        client.register_schema(subject, Schema(broken, "PROTOBUF"))


def test_a_subject_without_a_rule_takes_anything_whatever_holds_for_others(
    registry: EmbeddedRegistry, client: SchemaRegistryClient, subject: str, tmp_path: Path
) -> None:
    """The registry answers NONE for a subject without a level as well, which would follow the others' level."""
    client.register_schema(subject, Schema(contract_text(3), "PROTOBUF"))
    text = f"others: BACKWARD\nsubjects: [{{name: {subject}, compatibility: NONE}}]\n"

    outcome = declare_level(registry, tmp_path / "subjects.yaml", text)

    assert outcome.exit_code == 0
    broken = contract_text(3).replace("string session_id = 7;", "int64 session_id = 7;")
    client.register_schema(subject, Schema(broken, "PROTOBUF"))


def test_a_registry_that_never_responds_ends_the_patience_at_the_next_attempt(tmp_path: Path) -> None:
    outcome = provision("subjects", GAMELAKE_REGISTRY_URL="http://127.0.0.1:9/apis", PROVISION_PATIENCE_SECONDS="1")

    assert outcome.exit_code == 4
    assert "make logs S=registry" in outcome.errors
