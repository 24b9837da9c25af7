"""Administration of PostgreSQL as its superuser: roles, databases, and owners of the objects in them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import Enum, auto
from types import MappingProxyType
from typing import Any, Self

from psycopg import Connection, OperationalError, connect
from psycopg import Error as PostgresError
from psycopg.sql import SQL, Identifier, Literal

from gamelake.model.credentials import ServerCredentials
from services.provision.provisioning import ServiceRefusedError, ServiceUnavailableError

SUPERUSER = "postgres"
_ANSWER_SECONDS = 10
# Attributes of a role, by its column in pg_roles.
_RIGHTS: Mapping[str, str] = MappingProxyType(
    {
        "rolsuper": "everything",
        "rolcreatedb": "create databases",
        "rolcreaterole": "create roles",
        "rolreplication": "replicate",
        "rolbypassrls": "bypass row security",
    }
)
_ORDINARY = SQL("NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS")
# Tables, views, sequences and the like; a sequence that belongs to a column, and an index, follow their table.
_OTHERS_OBJECTS = SQL(
    """
    SELECT n.nspname, c.relname
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_roles r ON r.oid = c.relowner
    WHERE n.nspname NOT LIKE 'pg\\_%%' AND n.nspname <> 'information_schema' AND r.rolname <> %s
      AND c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f')
      AND NOT (c.relkind = 'S' AND EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype IN ('a', 'i')))
    """
)


class _Refusal(Enum):
    """Why a server ends a connection before it begins."""

    WRONG_PASSWORD = auto()
    CLOSED_DATABASE = auto()


class _DatabaseClosedError(ServiceUnavailableError):
    """The password is right, and the role may not connect to the database."""


def _refusal(error: OperationalError) -> _Refusal | None:
    """Why the server refused the connection, None for other reasons.

    By its text: libpq gives no SQLSTATE of a connection that failed (psycopg 3.3 with libpq 18; `error.sqlstate` is
    None). The server writes it in the language of its `lc_messages`, which is English in the stack's cluster.
    """
    if error.pgconn is not None and error.pgconn.needs_password:
        return _Refusal.WRONG_PASSWORD
    text = str(error)
    if "FATAL:  password authentication failed for user" in text:
        return _Refusal.WRONG_PASSWORD
    return _Refusal.CLOSED_DATABASE if "FATAL:  permission denied for database" in text else None


class PostgresAdmin:
    """Reads and changes roles and databases of a server; use it as a context manager."""

    def __init__(self, host: str, password: str) -> None:
        self._host = host
        self._superuser = ServerCredentials(SUPERUSER, password)
        self._connection: Connection[tuple[Any, ...]] | None = None

    def __enter__(self) -> Self:
        """Connect at the first statement."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        if self._connection is not None:
            self._connection.close()

    def databases(self) -> dict[str, str]:
        """Return all databases except the templates, with their owners.

        Raises:
            ServiceUnavailableError: the server gave no answer, or is not ready yet.
            ServiceRefusedError: it does not take the superuser's password.
        """
        statement = "SELECT datname, pg_get_userbyid(datdba) FROM pg_database WHERE NOT datistemplate"
        return {str(name): str(owner) for name, owner in self._ask(SQL(statement))}

    def roles(self) -> dict[str, set[str]]:
        """Return all roles that may log in, each with its attributes."""
        statement = SQL("SELECT rolname, {} FROM pg_roles WHERE rolcanlogin").format(
            SQL(", ").join(Identifier(column) for column in _RIGHTS)
        )
        rows = self._ask(statement)
        return {str(name): {_RIGHTS[c] for c, has in zip(_RIGHTS, rest, strict=True) if has} for name, *rest in rows}

    def create_role(self, role: ServerCredentials) -> None:
        """Create a role that may log in, with no other attribute."""
        name, password = Identifier(role.username), Literal(self._as_kept(role))
        self._do(SQL("CREATE ROLE {} LOGIN {} PASSWORD {}").format(name, _ORDINARY, password))

    def set_password(self, role: ServerCredentials) -> None:
        """Change the password of a role."""
        name, password = Identifier(role.username), Literal(self._as_kept(role))
        self._do(SQL("ALTER ROLE {} PASSWORD {}").format(name, password))

    def make_ordinary(self, role: str) -> None:
        """Revoke all attributes of a role except that it may log in."""
        self._do(SQL("ALTER ROLE {} {}").format(Identifier(role), _ORDINARY))

    def knows(self, role: ServerCredentials) -> bool:
        """Return True if the server accepts this role with this password, whatever its rights are."""
        # The server checks the password before the right to connect.
        with suppress(_DatabaseClosedError):
            try:
                self._connect(role, SUPERUSER).close()
            except ServiceRefusedError:
                return False
        return True

    def create_database(self, name: str) -> None:
        """Create a database that is owned by the role of its name."""
        self._do(SQL("CREATE DATABASE {} OWNER {}").format(Identifier(name), Identifier(name)))

    def give_database(self, name: str) -> None:
        """Make the role of its name the owner of a database."""
        self._do(SQL("ALTER DATABASE {} OWNER TO {}").format(Identifier(name), Identifier(name)))

    def give_what_is_in(self, database: str) -> int:
        """Make the role of its name the owner of all objects in a database; returns how many had another owner."""
        with self._connect(self._superuser, database) as connection, _classified_errors():
            found = connection.execute(_OTHERS_OBJECTS, (database,)).fetchall()
            for schema, name in found:
                statement = SQL("ALTER TABLE {} OWNER TO {}")
                connection.execute(statement.format(Identifier(schema, name), Identifier(database)))
        return len(found)

    def may_empty_log(self, owner: str) -> bool:
        """Return True if a database's owner may switch the write-ahead log to a new file and make a checkpoint."""
        statement = "SELECT pg_has_role(%s, 'pg_checkpoint', 'USAGE') AND has_function_privilege(%s, %s, 'EXECUTE')"
        with self._connect(self._superuser, owner) as connection, _classified_errors():
            (may,) = connection.execute(statement, (owner, owner, "pg_switch_wal()")).fetchone() or (False,)
        return bool(may)

    def let_empty_log(self, owner: str) -> None:
        """Grant a database's owner that right."""
        # Functions belong to a database: the right holds only in the owner's own.
        with self._connect(self._superuser, owner) as connection, _classified_errors():
            connection.execute(SQL("GRANT pg_checkpoint TO {}").format(Identifier(owner)))
            connection.execute(SQL("GRANT EXECUTE ON FUNCTION pg_switch_wal() TO {}").format(Identifier(owner)))

    def open_to_everybody(self) -> list[str]:
        """Return databases that any role may connect to, the server's own included."""
        statement = SQL(
            "SELECT datname FROM pg_database WHERE NOT datistemplate AND"
            " (has_database_privilege('public', oid, 'CONNECT') OR has_database_privilege('public', oid, 'TEMP'))"
        )
        return sorted(str(name) for (name,) in self._ask(statement))

    def close_to_others(self, database: str) -> None:
        """Revoke access to a database from all roles except its owner."""
        self._do(SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(Identifier(database)))

    def _as_kept(self, role: ServerCredentials) -> str:
        """The password's verifier as the server stores it, so that the password is in no log and not on the wire."""
        kept = self._server().pgconn.encrypt_password(role.password.encode(), role.username.encode(), b"scram-sha-256")
        return kept.decode()

    def _ask(self, statement: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401 # psycopg's composed statements
        with _classified_errors():
            return self._server().execute(statement).fetchall()

    def _do(self, statement: Any) -> None:  # noqa: ANN401 # see above
        with _classified_errors():
            self._server().execute(statement)

    def _server(self) -> Connection[tuple[Any, ...]]:
        if self._connection is None:
            self._connection = self._connect(self._superuser, SUPERUSER)
        return self._connection

    def _connect(self, user: ServerCredentials, database: str) -> Connection[tuple[Any, ...]]:
        try:
            return connect(
                host=self._host,
                dbname=database,
                user=user.username,
                password=user.password,
                connect_timeout=_ANSWER_SECONDS,
                autocommit=True,
            )
        except OperationalError as error:
            refusal = _refusal(error)
            if refusal is _Refusal.WRONG_PASSWORD:
                problem = f"PostgreSQL refuses the password of {user.username}"
                remedy = "it keeps the one of its first start; put that back into compose/secrets/postgres-password"
                raise ServiceRefusedError(f"{problem}: {remedy}") from error
            closed = refusal is _Refusal.CLOSED_DATABASE
            kind = _DatabaseClosedError if closed else ServiceUnavailableError
            raise kind(f"PostgreSQL is not available: {error}") from error


@contextmanager
def _classified_errors() -> Iterator[None]:
    try:
        yield
    except OperationalError as error:
        raise ServiceUnavailableError(f"PostgreSQL is not available: {error}") from error
    except PostgresError as error:
        raise ServiceRefusedError(f"PostgreSQL refuses: {error}") from error
