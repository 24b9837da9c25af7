"""What `compose/postgres/databases.yaml` may say: databases, each with a role of its name that owns it."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec

from services.provision.declaration import load_declaration, refuse_first, repeated

# Lower case and no dash: the name needs no quotes in SQL. PostgreSQL cuts off what is longer.
DatabaseName = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
# The server's own, which no role but the superuser may own.
_TAKEN = frozenset({"postgres", "template0", "template1"})


class Right(StrEnum):
    """What an owner may do to the server, beside what is in its database."""

    EMPTY_LOG = "empty_log"


class DatabaseSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One database and the role that owns it; its password is the secret `postgres-<name>`."""

    name: DatabaseName
    may: tuple[Right, ...] = ()


class DeclaredDatabases(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole of the file."""

    databases: Annotated[tuple[DatabaseSpec, ...], msgspec.Meta(min_length=1)]


def load_databases(path: Path) -> DeclaredDatabases:
    """Read and check the file.

    Raises:
        ContractError: a key is unknown or a value is impossible; names file and line.
    """
    declared, document = load_declaration(path, DeclaredDatabases)
    names = [database.name for database in declared.databases]
    refuse_first(repeated(names, "$.databases[{index}].name"), document)
    taken = [
        (f"$.databases[{index}].name", f"'{name}' is PostgreSQL's own; take another name")
        for index, name in enumerate(names)
        if name in _TAKEN
    ]
    refuse_first(taken, document)
    return declared
