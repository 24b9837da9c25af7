"""The stack's declarations, and errors in them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined] # its stubs do not export them
    AclOperation,
    ResourcePatternType,
    ResourceType,
)

from gamelake.model.errors import ContractError
from services.provision.access_rules import AccessRule, declared_rules
from services.provision.declarations import (
    BucketNotification,
    Compatibility,
    Policy,
    Right,
    load_buckets,
    load_databases,
    load_subjects,
    load_topics,
)

COMPOSE = Path(__file__).parents[3] / "compose"
A_POLICY = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}]}'


def written(folder: Path, text: str) -> Path:
    file = folder / "declared.yaml"
    file.write_text(text)
    return file


A_TOPIC = "topics:\n  - name: events\n    partitions: 6\n    retention_hours: 1\n"


@pytest.mark.parametrize(
    ("load", "text", "line", "problem"),
    [
        (load_topics, A_TOPIC + "    partition: 6\n", 5, "unknown key 'partition'"),
        (load_topics, A_TOPIC + "others: 1\n", 5, "unknown key 'others'"),
        (load_topics, A_TOPIC + "    readers: [{user: ingest, group: a}]\n", 5, "unknown key 'group'"),
        (load_topics, A_TOPIC + "    readers: [{user: ingest}]\n", 5, "missing required field `groups`"),
        (load_topics, A_TOPIC + "    config: {retention.ms: 5}\n", 5, "retention.ms is set by retention_hours"),
        (load_topics, A_TOPIC.replace("6", "0"), 3, ">= 1"),
        (load_topics, A_TOPIC + A_TOPIC.replace("topics:\n", ""), 5, "'events' is listed twice"),
        (load_topics, "topics: []\n", 1, "length >= 1"),
        (load_buckets, "buckets: [{name: lakehouse, versioning: on}]\n", 1, "unknown key 'versioning'"),
        (load_buckets, "buckets: [{name: abc, expires_days: 0}]\n", 1, ">= 1"),
        (load_buckets, "buckets: [{name: abc, notification: {target: files}}]\n", 1, "matching regex"),
        (load_buckets, "buckets: [{name: Lakehouse}]\n", 1, "matching regex"),
        (load_buckets, "buckets:\n  - name: abc\nusers:\n  - {name: abc, policy: none}\n", 4, "no policies/none.json"),
        (load_buckets, "buckets:\n  - name: a-b-c\n  - name: a-b-c\n", 3, "'a-b-c' is listed twice"),
        (load_databases, "databases: []\n", 1, "length >= 1"),
        (load_databases, "databases: [{name: vault, owner: me}]\n", 1, "unknown key 'owner'"),
        (load_databases, "databases: [{name: the-vault}]\n", 1, "matching regex"),
        (load_databases, "databases:\n  - name: vault\n  - name: vault\n", 3, "'vault' is listed twice"),
        (load_databases, "databases:\n  - name: postgres\n", 2, "'postgres' is reserved by PostgreSQL"),
        (load_subjects, "others: BACKWARD\nsubject: []\n", 2, "unknown key 'subject'"),
        (load_subjects, "others: backward\n", 1, "Invalid enum value 'backward'"),
        (load_subjects, "others: NONE\nsubjects:\n  - name: a\n", 3, "missing required field `compatibility`"),
    ],
)  # fmt: skip
def test_an_error_has_its_file_and_line(
    tmp_path: Path, load: Callable[[Path], object], text: str, line: int, problem: str
) -> None:
    file = written(tmp_path, text)

    with pytest.raises(ContractError) as raised:
        load(file)

    assert str(raised.value).startswith(f"{file}:{line}: ")
    assert problem in str(raised.value)


def test_the_stacks_topics_give_each_user_its_part_and_no_more() -> None:
    declared = load_topics(COMPOSE / "kafka" / "topics.yaml")

    by_user = {user: {rule for rule in declared_rules(declared) if rule.principal == user} for user in USERS}
    assert {topic.name: topic.partitions for topic in declared.topics} == {
        "events": 6,
        "files.notifications": 4,
        "live-ops.player-state": 6,
        "live-ops.segments": 6,
        "live-ops.signals": 1,
        "audit.queries": 1,
        "audit.support-calls": 1,
    }
    assert declared_rules(declared) == frozenset().union(*by_user.values())
    assert by_user["User:ingest"] == writing("User:ingest", "events", "audit.support-calls")
    assert by_user["User:simulator"] == writing("User:simulator", "events")
    assert by_user["User:trino"] == writing("User:trino", "audit.queries")
    audit = ("audit.queries", "audit.support-calls")
    assert by_user["User:audit"] == reading("User:audit", "audit", *audit) | {
        AccessRule("User:audit", AclOperation.DELETE, ResourceType.TOPIC, topic) for topic in audit
    }
    input_topics = ("events", "files.notifications")
    assert by_user["User:ingest-events"] == reading("User:ingest-events", "spark-kafka-", *input_topics)
    assert by_user["User:delivery"] == reading("User:delivery", "delivery", "events")
    for notifier, seen in (
        ("User:object-store", set()),
        ("User:maintenance", observing("User:maintenance", *input_topics)),
    ):
        assert by_user[notifier] == seen | {
            AccessRule(notifier, AclOperation.WRITE, ResourceType.TOPIC, "files.notifications"),
            AccessRule(notifier, AclOperation.DESCRIBE, ResourceType.TOPIC, "files.notifications"),
            AccessRule(notifier, AclOperation.IDEMPOTENT_WRITE, ResourceType.BROKER, "kafka-cluster"),
        }
    feeds = ("live-ops.player-state", "live-ops.segments", "live-ops.signals")
    assert by_user["User:live-ops"] == reading("User:live-ops", "spark-kafka-", "events") | {
        AccessRule("User:live-ops", AclOperation.IDEMPOTENT_WRITE, ResourceType.BROKER, "kafka-cluster"),
        *(
            AccessRule("User:live-ops", operation, ResourceType.TOPIC, topic)
            for topic in feeds
            for operation in (AclOperation.WRITE, AclOperation.DESCRIBE)
        ),
    }
    assert by_user["User:offers"] == reading("User:offers", "offers-", *feeds)


USERS = tuple(
    f"User:{name}"
    for name in (
        *("ingest", "simulator", "ingest-events", "live-ops", "offers"),
        *("maintenance", "object-store", "delivery", "trino", "audit"),
    )
)


def writing(user: str, *topics: str) -> set[AccessRule]:
    return {
        AccessRule(user, AclOperation.IDEMPOTENT_WRITE, ResourceType.BROKER, "kafka-cluster"),
        *(
            AccessRule(user, operation, ResourceType.TOPIC, topic)
            for topic in topics
            for operation in (AclOperation.WRITE, AclOperation.DESCRIBE)
        ),
    }


def observing(user: str, *topics: str) -> set[AccessRule]:
    return {
        AccessRule(user, operation, ResourceType.TOPIC, topic)
        for topic in topics
        for operation in (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
    }


def reading(user: str, groups: str, *topics: str) -> set[AccessRule]:
    return {
        AccessRule(user, AclOperation.READ, ResourceType.GROUP, groups, ResourcePatternType.PREFIXED),
        *(
            AccessRule(user, operation, ResourceType.TOPIC, topic)
            for topic in topics
            for operation in (AclOperation.READ, AclOperation.DESCRIBE)
        ),
    }


def test_of_the_states_of_players_kafka_keeps_the_newest_of_each() -> None:
    declared = load_topics(COMPOSE / "kafka" / "topics.yaml")

    (states,) = [topic for topic in declared.topics if topic.name == "live-ops.player-state"]
    assert states.settings["cleanup.policy"] == "compact"


def test_settings_are_written_as_kafka_writes_them(tmp_path: Path) -> None:
    text = A_TOPIC + "    config: {retention.bytes: 1000, preallocate: true, cleanup.policy: compact}\n"

    (topic,) = load_topics(written(tmp_path, text)).topics

    assert topic.settings == {
        "retention.ms": "3600000",
        "retention.bytes": "1000",
        "preallocate": "true",
        "cleanup.policy": "compact",
    }


def test_the_stacks_databases_are_the_registrys_and_the_vaults() -> None:
    declared = load_databases(COMPOSE / "postgres" / "databases.yaml")

    assert {database.name: database.may for database in declared.databases} == {
        "registry": (),
        "vault": (Right.EMPTY_LOG,),
    }


def test_superset_adds_its_database_to_those_of_the_stack() -> None:
    declared = load_databases(COMPOSE / "superset" / "databases.yaml").databases
    superset = next(database for database in declared if database.name == "superset")

    assert superset.may == ()
    assert [each for each in declared if each is not superset] == list(
        load_databases(COMPOSE / "postgres" / "databases.yaml").databases
    )


def test_the_stacks_buckets_name_a_policy_for_each_user() -> None:
    declared = load_buckets(COMPOSE / "object-store" / "buckets.yaml")

    assert [bucket.name for bucket in declared.buckets] == ["lakehouse", "catalog", "landing"]
    (landing,) = (bucket for bucket in declared.buckets if bucket.name == "landing")
    assert landing.notification == BucketNotification(target="FILES", prefix="incoming/")
    assert landing.expires_days is not None
    assert {user.name: user.policy for user in declared.users} == {
        "ingest-events": "ingest-events",
        "serving": "serving",
        "privacy": "privacy",
        "trino": "trino",
        "catalog": "catalog",
        "maintenance": "maintenance",
        "delivery": "delivery",
        "uploads": "uploads",
        "audit": "audit",
        "metrics": "metrics",
    }
    assert {policy.name for policy in declared.policies} == {user.policy for user in declared.users}


@pytest.mark.parametrize(
    ("text", "problem"),
    [("{", ":1: Expecting property name"), ('{"Version": "2012-10-17"}', ":1: a policy is an object with at least")],
)
def test_a_malformed_policy_is_reported_with_its_file(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "trino.json").write_text(text)
    file = written(tmp_path, "buckets: [{name: lakehouse}]\nusers: [{name: trino, policy: trino}]\n")

    with pytest.raises(ContractError, match=f"trino.json{problem}"):
        load_buckets(file)


@pytest.mark.parametrize(
    ("other", "is_the_same"),
    [
        (A_POLICY, True),
        (A_POLICY.replace('"s3:GetObject"', '["s3:GetObject"]').replace(" ", "\n"), True),
        (A_POLICY.replace("Get", "Put"), False),
        (A_POLICY.replace("Allow", "Deny"), False),
    ],
)
def test_policies_are_compared_by_what_they_say(other: str, is_the_same: object) -> None:
    assert Policy("trino", A_POLICY).is_equivalent_to(other) is is_the_same


def test_the_order_of_actions_and_statements_says_nothing() -> None:
    one = '{"Statement": [{"Action": ["a", "b"], "Resource": ["x", "y"]}, {"Action": ["c"], "Resource": ["z"]}]}'
    other = '{"Statement": [{"Resource": "z", "Action": "c"}, {"Action": ["b", "a"], "Resource": ["y", "x"]}]}'

    assert Policy("trino", one).is_equivalent_to(other)


def test_the_stacks_subjects_may_only_grow() -> None:
    declared = load_subjects(COMPOSE / "registry" / "subjects.yaml")

    assert {subject.name: subject.compatibility for subject in declared.subjects} == dict.fromkeys(
        ("events-value", "live-ops.player-state-value", "live-ops.segments-value", "live-ops.signals-value"),
        Compatibility.BACKWARD_TRANSITIVE,
    )
    assert declared.others is Compatibility.BACKWARD


def test_no_user_of_the_store_makes_further_keys() -> None:
    declared = load_buckets(COMPOSE / "object-store" / "buckets.yaml")

    for policy in declared.policies:
        denied = {
            action
            for statement in json.loads(policy.text)["Statement"]
            if statement["Effect"] == "Deny" and "Resource" not in statement
            for action in statement["Action"]
        }
        assert "admin:CreateServiceAccount" in denied
