"""PostgreSQL brought in line with its file: a role for each database, which owns it and gets into no other."""

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL, Identifier

from gamelake.model.credentials import ServerCredentials
from services.provision.postgres import PostgresAdmin
from services.provision.provisioning import ServiceRefusedError, ServiceUnavailableError
from tools.embedded.ports import free_port
from tools.embedded.postgres import EmbeddedPostgres
from tools.embedded.service import REPOSITORY

PASSWORD = "the-first-password-of-a-test"  # noqa: S105 # of roles that live for a test
_Connection = psycopg.Connection[tuple[object, ...]]


def _new_name() -> str:
    return f"t_{uuid.uuid4().hex[:12]}"


@dataclass(slots=True)
class Declared:
    """Two databases of random names, declared in a folder, on a real server."""

    postgres: EmbeddedPostgres
    folder: Path
    first: str = field(default_factory=_new_name)
    second: str = field(default_factory=_new_name)
    lines: list[str] = field(default_factory=list)
    errors: str = ""

    def __post_init__(self) -> None:
        """Declare both; the second's owner may empty the server's log."""
        entries = f"- {{name: {self.first}}}\n- {{name: {self.second}, may: [empty_log]}}\n"
        (self.folder / "databases.yaml").write_text(f"databases:\n{entries}")
        (self.folder / "postgres-password").write_text(self.superusers_password)
        for name in (self.first, self.second):
            self.password(name, PASSWORD)

    @property
    def superusers_password(self) -> str:
        return (self.postgres.directory / "superuser").read_text()

    def password(self, name: str, password: str) -> None:
        """A role's secret."""
        (self.folder / f"postgres-{name}").write_text(f"username={name}\npassword={password}\n")

    def provision(self) -> int:
        """Bring the server in line. Return the exit code."""
        address = conninfo_to_dict(self.postgres.uri("postgres"))
        environment = {
            **os.environ,
            "PGPORT": str(address["port"]),
            "PROVISION_POSTGRES_HOST": str(address["host"]),
            "PROVISION_DATABASES_FILE": str(self.folder / "databases.yaml"),
            "PROVISION_SECRETS": str(self.folder),
            "PROVISION_PATIENCE_SECONDS": "10",
        }
        command = (sys.executable, "-m", "services.provision.databases")
        done = subprocess.run(command, env=environment, cwd=REPOSITORY, capture_output=True, text=True, check=False)
        # What other tests have on the server is none of this one's business.
        mine = (self.first, self.second, "nothing to change")
        self.lines = [line for line in done.stdout.splitlines() if any(word in line for word in mine)]
        self.errors = done.stderr
        return done.returncode

    def as_role(self, role: str, database: str, password: str = PASSWORD) -> _Connection:
        uri = self.postgres.uri(database)
        return psycopg.connect(uri, user=role, password=password, connect_timeout=5, autocommit=True)

    def as_superuser(self, database: str = "postgres") -> _Connection:
        """A connection that may do anything."""
        return self.as_role("postgres", database, self.superusers_password)


@pytest.fixture
def declared(postgres: EmbeddedPostgres, tmp_path: Path) -> Iterator[Declared]:
    """Databases that don't exist yet, and are gone after the test."""
    declared = Declared(postgres, tmp_path)
    yield declared
    for name in (declared.first, declared.second):
        with suppress(psycopg.errors.InvalidCatalogName):
            postgres.drop_database(name)


def test_roles_and_databases_are_made_as_declared_and_a_second_run_changes_nothing(declared: Declared) -> None:
    assert declared.provision() == 0, declared.errors
    first, second = declared.first, declared.second
    assert declared.lines[:4] == [
        f"databases: created the role {first}",
        f"databases: created the role {second}",
        f"databases: created the database {first}",
        f"databases: created the database {second}",
    ]
    assert f"databases: the role {second} may switch the write-ahead log" in declared.lines

    assert declared.provision() == 0
    assert declared.lines == ["databases: nothing to change"]


def test_a_role_gets_into_its_own_database_and_into_no_other(declared: Declared) -> None:
    declared.provision()

    with declared.as_role(declared.first, declared.first) as owner:
        owner.execute("CREATE TABLE mine (number INT)")
    for other in (declared.second, "postgres"):
        with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
            declared.as_role(declared.first, other)


def test_only_who_is_declared_to_may_empty_the_servers_log(declared: Declared) -> None:
    declared.provision()

    with declared.as_role(declared.second, declared.second) as allowed:
        allowed.execute("SELECT pg_switch_wal()")
        allowed.execute("CHECKPOINT")
    with declared.as_role(declared.first, declared.first) as other:
        for statement in ("SELECT pg_switch_wal()", "CHECKPOINT"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                other.execute(statement)


def test_what_the_superuser_had_made_becomes_the_roles(declared: Declared) -> None:
    with declared.as_superuser() as server:
        server.execute(SQL("CREATE DATABASE {}").format(Identifier(declared.first)))
    with declared.as_superuser(declared.first) as server:
        server.execute("CREATE TABLE schemas (id SERIAL PRIMARY KEY, text TEXT)")
        server.execute("CREATE SEQUENCE numbers; CREATE VIEW texts AS SELECT text FROM schemas")

    assert declared.provision() == 0, declared.errors

    assert (
        f"databases: 3 objects in the database {declared.first} are owned by the role {declared.first} now"
        in declared.lines
    )
    with declared.as_role(declared.first, declared.first) as owner:
        owner.execute("INSERT INTO schemas (text) VALUES ('a'); ALTER TABLE schemas ADD COLUMN more INT")
        owner.execute("DROP VIEW texts; DROP SEQUENCE numbers")


def test_a_new_password_replaces_the_old_one(declared: Declared) -> None:
    declared.provision()
    declared.password(declared.first, "another-password-of-a-test")

    assert declared.provision() == 0
    assert declared.lines == [f"databases: the role {declared.first} has a new password, from its secret"]
    declared.as_role(declared.first, declared.first, "another-password-of-a-test").close()
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        declared.as_role(declared.first, declared.first)


def test_a_wrong_password_is_distinguished_from_a_closed_database(declared: Declared) -> None:
    declared.provision()
    address = conninfo_to_dict(declared.postgres.uri("postgres"))
    wrong = ServerCredentials(declared.first, "another-password-of-a-test")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGPORT", str(address["port"]))
        with PostgresAdmin(str(address["host"]), declared.superusers_password) as admin:
            # No role may connect to the superuser's database.
            assert admin.knows(ServerCredentials(declared.first, PASSWORD))
            assert not admin.knows(wrong)
        with pytest.raises(ServiceRefusedError, match="refuses the password of postgres"):
            PostgresAdmin(str(address["host"]), "wrong").databases()
        patch.setenv("PGPORT", str(free_port()))
        with pytest.raises(ServiceUnavailableError, match="not available"):
            PostgresAdmin(str(address["host"]), "wrong").knows(wrong)


def test_rights_that_were_given_by_hand_are_taken_away(declared: Declared) -> None:
    declared.provision()
    with declared.as_superuser() as server:
        server.execute(SQL("ALTER ROLE {} SUPERUSER CREATEDB").format(Identifier(declared.first)))
        server.execute(SQL("GRANT CONNECT ON DATABASE {} TO PUBLIC").format(Identifier(declared.second)))

    assert declared.provision() == 0
    assert declared.lines == [
        f"databases: the role {declared.first} may no longer create databases, everything",
        f"databases: only the owner has access to the database {declared.second} now",
    ]


def test_no_password_reaches_the_server_as_it_is(declared: Declared) -> None:
    with declared.as_superuser() as server:
        server.execute("ALTER SYSTEM SET log_statement = 'all'")
        server.execute("SELECT pg_reload_conf()")
    try:
        declared.provision()
    finally:
        with declared.as_superuser() as server:
            server.execute("ALTER SYSTEM RESET log_statement")
            server.execute("SELECT pg_reload_conf()")

    log = (declared.postgres.directory / "postgres.log").read_text(errors="replace")
    assert f'CREATE DATABASE "{declared.first}"' in log
    assert PASSWORD not in log


def test_a_wrong_password_of_the_superuser_is_reported_at_once(declared: Declared) -> None:
    (declared.folder / "postgres-password").write_text("0123456789abcdef")

    assert declared.provision() == 2
    assert "PostgreSQL refuses the password of postgres" in declared.errors
    assert "0123456789abcdef" not in declared.errors
