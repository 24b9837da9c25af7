"""Queries in Trino are in the audit within seconds, which their users can neither read nor change."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import KafkaError, Producer

from tests.stack.platform import Stack
from tests.stack.trino_users import ADMIN, ANALYST, COMMITTED_SECONDS, ENGINEER, SUPPORT, User, await_answer, fill
from tools.stack import kafka

DENIED = "PERMISSION_DENIED"
CHANGES = [
    "INSERT INTO audit.queries (query_id) VALUES ('x')",
    "DELETE FROM audit.queries",
    "UPDATE audit.queries SET user_name = 'x'",
    "TRUNCATE TABLE audit.queries",
    "CREATE OR REPLACE TABLE audit.queries AS SELECT 1 AS number",
    "ALTER TABLE audit.queries EXECUTE optimize",
    "CALL system.vacuum('audit', 'queries', '7d')",
]


@pytest.fixture(autouse=True, scope="module")
def asked(stack: Stack) -> None:
    """The audit runs, and silver has a row to ask for."""
    stack.await_health("audit")
    fill(["silver.archery_duel_events"])
    # On a new stack its first record makes the table, and Trino has to learn of it.
    await_answer(ADMIN, "SELECT 1 FROM audit.queries LIMIT 1", timeout=COMMITTED_SECONDS)


def a_name() -> str:
    """A name for a column of a result, by which a query is found in the audit.

    Without digits: seven of them in a row, underscores between them or not, would be masked as a number.
    """
    return "asked_" + uuid.uuid4().hex.translate(str.maketrans("0123456789", "ghijklmnop"))


def in_audit(name: str) -> str:
    """The question for the ended query that has this name."""
    return f"SELECT * FROM audit.queries WHERE query_text LIKE '%{name} FROM%' AND event = 'completed'"  # noqa: S608


def test_a_query_is_in_the_audit_within_seconds() -> None:
    name, began = a_name(), datetime.now(UTC)
    ANALYST.ask(f"SELECT count(gamer_id) AS {name} FROM silver.archery_duel_events WHERE event_name <> 'Anna'")  # noqa: S608

    await_answer(ADMIN, in_audit(name), timeout=30)

    (row,) = ADMIN.records(in_audit(name))
    assert (row["user_name"], row["principal"], row["state"]) == ("analyst", "analyst", "FINISHED")
    assert row["source"] == "gamelake-tests"
    assert row["tables_read"] == ["silver.archery_duel_events"]
    assert "silver.archery_duel_events.gamer_id" in row["columns_read"]
    assert row["rows_read"] > 0
    assert "'***'" in row["query_text"]
    assert "Anna" not in row["query_text"]
    # The machine's clock and Kafka's are the same one here.
    assert timedelta() <= row["recorded_at"] - began < timedelta(seconds=30)


def test_a_refused_query_is_in_the_audit_too() -> None:
    name = a_name()
    assert ANALYST.refusal(f"SELECT count(*) AS {name} FROM bronze.events") == DENIED  # noqa: S608

    await_answer(ADMIN, in_audit(name), timeout=30)

    assert {row["error"] for row in ADMIN.records(in_audit(name))} == {DENIED}


@pytest.mark.parametrize("user", [ANALYST, SUPPORT, ENGINEER], ids=lambda user: user.name)
def test_only_an_admin_reads_the_audit(user: User) -> None:
    assert user.refusal("SELECT * FROM audit.queries LIMIT 1") == DENIED
    assert user.refusal("SELECT * FROM audit.support_calls LIMIT 1") in {DENIED, "TABLE_NOT_FOUND"}
    assert ["audit"] not in user.ask("SHOW SCHEMAS")


@pytest.mark.parametrize("user", [ANALYST, ENGINEER, ADMIN], ids=lambda user: user.name)
def test_no_user_changes_the_audit_by_trino(user: User) -> None:
    before = ADMIN.one("SELECT count(*) FROM audit.queries")

    outcomes = {statement: user.refusal(statement) for statement in CHANGES}

    assert {statement for statement, outcome in outcomes.items() if not outcome} == set()
    assert ADMIN.one("SELECT count(*) FROM audit.queries") >= before


@pytest.mark.parametrize(("user", "topic"), [("ingest", "audit.queries"), ("trino", "audit.support-calls")])
def test_a_writer_of_the_audit_writes_in_its_own_name_only(user: str, topic: str) -> None:
    producer = Producer({**kafka(user).for_clients(), "log_level": 0, "message.timeout.ms": 10_000})
    refusals: list[KafkaError | None] = []

    producer.produce(topic, b"x", on_delivery=lambda error, _: refusals.append(error))
    producer.flush(20)

    (refusal,) = refusals
    assert refusal is not None
    assert refusal.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
