"""The rights of the gateway's role in PostgreSQL and of its user in Kafka."""

import subprocess

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from gamelake.kafka import KafkaAccess
from gamelake.model.credentials import read_credentials
from tests.stack.platform import ROOT, SECRETS, Stack
from tools.stack import kafka

ROLES = ("registry", "vault")
TOPIC = "events"


def ask_postgres(role: str, database: str, statement: str) -> "subprocess.CompletedProcess[str]":
    """A query as a role, over the network like its program; the password is passed by standard input."""
    as_role = f"host=127.0.0.1 user={role} dbname={database}"
    script = 'read -r PGPASSWORD; export PGPASSWORD; exec psql --no-psqlrc --tuples-only --no-align "$0" --command "$1"'
    command = (str(ROOT / "compose/stack.sh"), "exec", "--no-TTY", "postgres", "bash", "-c", script, as_role, statement)
    password = read_credentials(SECRETS / f"postgres-{role}", "it").password
    return subprocess.run(command, input=f"{password}\n", capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.usefixtures("stack")
@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_connect_only_to_its_own_database(role: str) -> None:
    for database in (*ROLES, "postgres", "template1"):
        outcome = ask_postgres(role, database, "SELECT current_user")

        assert (outcome.stdout.strip() == role) == (database in (role, "template1")), outcome.stderr
        assert outcome.returncode == 0 or "permission denied for database" in outcome.stderr


@pytest.mark.usefixtures("stack")
@pytest.mark.parametrize("role", ROLES)
def test_a_role_owns_its_tables_and_has_no_other_rights(role: str) -> None:
    rights = "rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls"
    outcome = ask_postgres(role, role, f"SELECT {rights} FROM pg_roles WHERE rolname = current_user")  # noqa: S608 # ours
    others = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tableowner <> current_user"
    foreign_tables = ask_postgres(role, role, others)

    assert outcome.stdout.strip() == "f"
    assert foreign_tables.stdout.strip() == ""


@pytest.fixture
def as_gateway(stack: Stack) -> KafkaAccess:
    """Access to Kafka as the gateway's user."""
    assert stack.is_healthy("kafka")
    return kafka("ingest")


def test_the_gateways_user_reads_nothing(as_gateway: KafkaAccess) -> None:
    consumer = Consumer({**as_gateway.for_clients(), "group.id": "spark-kafka-other", "log_level": 0})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    message = consumer.poll(20)
    consumer.close()

    assert message is not None
    error = message.error()
    assert error is not None
    assert error.code() in (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED)


def test_the_gateways_user_writes_to_no_other_topic(as_gateway: KafkaAccess) -> None:
    producer = Producer({**as_gateway.for_clients(), "log_level": 0, "message.timeout.ms": 10_000})
    refusals: list[KafkaError | None] = []

    producer.produce("__consumer_offsets", b"x", on_delivery=lambda error, _: refusals.append(error))
    producer.flush(20)

    (refusal,) = refusals
    assert refusal is not None
    assert refusal.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
