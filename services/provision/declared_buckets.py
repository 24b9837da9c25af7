"""What `compose/object-store/buckets.yaml` may say: buckets, and users with the policy that each of them has."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from gamelake.contracts.located_yaml import LocatedDocument
from gamelake.errors import ContractError
from services.provision.declaration import load_declaration, refuse_first, repeated

POLICIES = "policies"

BucketName = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")]
Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9-]{0,47}$")]


class TellsOf(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whom a bucket tells of new objects: a target that the store was started with, and of which objects."""

    target: Annotated[str, msgspec.Meta(pattern=r"^[A-Z][A-Z0-9]{0,31}$")]
    prefix: str = ""


class BucketSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One bucket, which keeps no old versions: Delta has its own, and what VACUUM deletes must be gone.

    Its objects go by themselves after `expires_days`, if that is said.
    """

    name: BucketName
    expires_days: Annotated[int, msgspec.Meta(ge=1, le=3650)] | None = None
    tells: TellsOf | None = None


class UserSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One user: its key is the secret `object-store-<name>`, its rights are `policies/<policy>.json` and no others."""

    name: Name
    policy: Name


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    buckets: Annotated[tuple[BucketSpec, ...], msgspec.Meta(min_length=1)]
    users: tuple[UserSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class Policy:
    """What a user may do, as the store's own policy language says it."""

    name: str
    text: str

    def says_the_same_as(self, text: str) -> bool:
        """Whether two policies differ in order and spelling only."""
        return _without_order(json.loads(self.text)) == _without_order(json.loads(text))


@dataclass(frozen=True, slots=True)
class DeclaredBuckets:
    """The whole of the file and of the policies that it names."""

    buckets: tuple[BucketSpec, ...]
    users: tuple[UserSpec, ...]
    policies: tuple[Policy, ...]


def load_buckets(path: Path) -> DeclaredBuckets:
    """Read and check the file and its policies.

    Raises:
        ContractError: a key is unknown, a value is impossible or a policy is not there; names file and line.
    """
    declared, document = load_declaration(path, _File)
    refuse_first(repeated([bucket.name for bucket in declared.buckets], "$.buckets[{index}].name"), document)
    refuse_first(repeated([user.name for user in declared.users], "$.users[{index}].name"), document)
    policies = {user.policy: _policy(document, index, user) for index, user in enumerate(declared.users)}
    return DeclaredBuckets(declared.buckets, declared.users, tuple(policies.values()))


def _policy(document: LocatedDocument, index: int, user: UserSpec) -> Policy:
    file = document.path.parent / POLICIES / f"{user.policy}.json"
    try:
        text = file.read_text(encoding="utf-8")
        parsed = json.loads(text)
    except OSError as error:
        line = document.line_of(f"$.users[{index}].policy")
        raise ContractError(f"{document.path}:{line}: there is no {POLICIES}/{file.name}; write it") from error
    except json.JSONDecodeError as error:
        raise ContractError(f"{file}:{error.lineno}: {error.msg}") from error
    if not isinstance(parsed, dict) or not parsed.get("Statement"):
        raise ContractError(f"{file}:1: a policy is an object with at least one Statement")
    return Policy(user.policy, text)


def _without_order(value: object) -> object:
    """One action is as good as a list of one, and lists are sets."""
    if isinstance(value, dict):
        as_lists = {"Action", "Resource"}
        return {
            key: _without_order([item] if key in as_lists and isinstance(item, str) else item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return sorted((_without_order(item) for item in value), key=repr)
    return value
