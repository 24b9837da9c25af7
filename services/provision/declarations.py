"""Declarations in `compose/`: topics, buckets and users, databases, compatibility of subjects; errors name the line.

Files: kafka/topics.yaml, object-store/buckets.yaml, postgres/databases.yaml, registry/subjects.yaml.
"""

import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec

from gamelake.contract.located_yaml import LocatedDocument, Problem, declaration, load_declaration, raise_first
from gamelake.model.errors import ContractError

RETENTION = "retention.ms"
_MILLISECONDS_AN_HOUR = 3_600_000
POLICIES = "policies"
# The server's own databases, which only the superuser may own.
_TAKEN = frozenset({"postgres", "template0", "template1"})


def duplicates(names: list[str], place: str) -> list[Problem]:
    """Yield a problem for each name that stands twice; `place` has `{index}` for the number of the entry."""
    return [
        (place.format(index=index), f"'{name}' is listed twice; remove one entry")
        for index, name in enumerate(names)
        if name in names[:index]
    ]


TopicName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9._-]{1,249}$")]
UserName = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9-]{0,47}$")]
GroupPrefix = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9._-]{1,100}$")]


class TopicReader(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A user that may read, and the prefix of its consumer groups."""

    user: UserName
    groups: GroupPrefix


class TopicSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One topic; `config` has further topic settings of Kafka; other settings are the broker's defaults."""

    name: TopicName
    partitions: Annotated[int, msgspec.Meta(ge=1, le=10_000)]
    retention_hours: Annotated[int, msgspec.Meta(ge=1, le=87_600)]
    replicas: Annotated[int, msgspec.Meta(ge=1, le=100)] = 1
    config: dict[str, str | int | bool] = {}
    writers: tuple[UserName, ...] = ()
    readers: tuple[TopicReader, ...] = ()
    observers: tuple[UserName, ...] = ()
    cleaners: tuple[UserName, ...] = ()

    @property
    def settings(self) -> dict[str, str]:
        """All declared topic settings, in Kafka's format."""
        texts = {
            key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in self.config.items()
        }
        return {RETENTION: str(self.retention_hours * _MILLISECONDS_AN_HOUR), **texts}


class DeclaredTopics(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of the file."""

    topics: Annotated[tuple[TopicSpec, ...], msgspec.Meta(min_length=1)]


@declaration
def load_topics(path: Path) -> DeclaredTopics:
    """Read and check the file.

    Raises:
        ContractError: a key is unknown or a value is impossible; names file and line.
    """
    declared, document = load_declaration(path, DeclaredTopics)
    raise_first(duplicates([topic.name for topic in declared.topics], "$.topics[{index}].name"), document)
    raise_first(_retention_said_twice(declared), document)
    return declared


def _retention_said_twice(declared: DeclaredTopics) -> list[Problem]:
    return [
        (f"$.topics[{index}].config.{RETENTION}", f"{RETENTION} is set by retention_hours; remove it from config")
        for index, topic in enumerate(declared.topics)
        if RETENTION in topic.config
    ]


BucketName = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")]
Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9-]{0,47}$")]


class BucketNotification(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Notifications of new objects: the target, which the store was started with, and the prefix of the objects."""

    target: Annotated[str, msgspec.Meta(pattern=r"^[A-Z][A-Z0-9]{0,31}$")]
    prefix: str = ""


class BucketSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One bucket without object versions: Delta has its own, and what VACUUM deletes must be gone.

    Objects expire after `expires_days`, if it is set.
    """

    name: BucketName
    expires_days: Annotated[int, msgspec.Meta(ge=1, le=3650)] | None = None
    notification: BucketNotification | None = None


class UserSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One user: its key is the secret `object-store-<name>`, its rights are exactly `policies/<policy>.json`."""

    name: Name
    policy: Name


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    buckets: Annotated[tuple[BucketSpec, ...], msgspec.Meta(min_length=1)]
    users: tuple[UserSpec, ...] = ()


# MinIO lets each user make further keys with the same rights, which a rotation of the user's own would not end.
_NO_FURTHER_KEYS = {"Effect": "Deny", "Action": ["admin:CreateServiceAccount", "admin:UpdateServiceAccount"]}


@dataclass(frozen=True, slots=True)
class Policy:
    """The rights of a user, in the store's policy language."""

    name: str
    text: str

    def is_equivalent_to(self, text: str) -> bool:
        """Return True if two policies differ only in order and notation."""
        return _without_order(json.loads(self.text)) == _without_order(json.loads(text))


@dataclass(frozen=True, slots=True)
class DeclaredBuckets:
    """The content of the file and of the policies that it names."""

    buckets: tuple[BucketSpec, ...]
    users: tuple[UserSpec, ...]
    policies: tuple[Policy, ...]


@declaration
def load_buckets(path: Path) -> DeclaredBuckets:
    """Read and check the file and its policies.

    Raises:
        ContractError: a key is unknown, a value is impossible or a policy is missing; names file and line.
    """
    declared, document = load_declaration(path, _File)
    raise_first(duplicates([bucket.name for bucket in declared.buckets], "$.buckets[{index}].name"), document)
    raise_first(duplicates([user.name for user in declared.users], "$.users[{index}].name"), document)
    policies = {user.policy: _policy(document, index, user) for index, user in enumerate(declared.users)}
    return DeclaredBuckets(declared.buckets, declared.users, tuple(policies.values()))


def _policy(document: LocatedDocument, index: int, user: UserSpec) -> Policy:
    file = document.path.parent / POLICIES / f"{user.policy}.json"
    try:
        parsed = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        line = document.line_of(f"$.users[{index}].policy")
        raise ContractError(f"{document.path}:{line}: there is no {POLICIES}/{file.name}; write it") from error
    except json.JSONDecodeError as error:
        raise ContractError(f"{file}:{error.lineno}: {error.msg}") from error
    if not isinstance(parsed, dict) or not parsed.get("Statement"):
        raise ContractError(f"{file}:1: a policy is an object with at least one Statement")
    # A file is a policy of a cloud, too, which does not know MinIO's own actions.
    return Policy(user.policy, json.dumps(parsed | {"Statement": [*parsed["Statement"], _NO_FURTHER_KEYS]}))


def _without_order(value: object) -> object:
    """A normal form: a single action is a list of one, and lists are sorted."""
    if isinstance(value, dict):
        as_lists = {"Action", "Resource"}
        return {
            key: _without_order([item] if key in as_lists and isinstance(item, str) else item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return sorted((_without_order(item) for item in value), key=repr)
    return value


# Lower case and no dash: the name needs no quotes in SQL. PostgreSQL truncates longer names.
DatabaseName = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]{0,62}$")]


class Right(StrEnum):
    """A right on the server that an owner may have."""

    EMPTY_LOG = "empty_log"


class DatabaseSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One database and the role that owns it; its password is the secret `postgres-<name>`."""

    name: DatabaseName
    may: tuple[Right, ...] = ()


class DeclaredDatabases(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of the file."""

    databases: Annotated[tuple[DatabaseSpec, ...], msgspec.Meta(min_length=1)]


@declaration
def load_databases(path: Path) -> DeclaredDatabases:
    """Read and check the file.

    Raises:
        ContractError: a key is unknown or a value is impossible; names file and line.
    """
    declared, document = load_declaration(path, DeclaredDatabases)
    names = [database.name for database in declared.databases]
    raise_first(duplicates(names, "$.databases[{index}].name"), document)
    taken = [
        (f"$.databases[{index}].name", f"'{name}' is reserved by PostgreSQL; use another name")
        for index, name in enumerate(names)
        if name in _TAKEN
    ]
    raise_first(taken, document)
    return declared


SubjectName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9._-]{1,249}$")]


class Compatibility(StrEnum):
    """The versions that a new version of a schema must be compatible with; the registry's own values.

    Source: Confluent, "Schema Evolution and Compatibility".
    """

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"


class SubjectSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One subject, which need not exist yet."""

    name: SubjectName
    compatibility: Compatibility


class DeclaredSubjects(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of the file; `others` is for subjects that it does not name."""

    others: Compatibility
    subjects: tuple[SubjectSpec, ...] = ()


@declaration
def load_subjects(path: Path) -> DeclaredSubjects:
    """Read and check the file.

    Raises:
        ContractError: a key is unknown or a value is impossible; names file and line.
    """
    declared, document = load_declaration(path, DeclaredSubjects)
    raise_first(duplicates([subject.name for subject in declared.subjects], "$.subjects[{index}].name"), document)
    return declared
