"""PostgreSQL as its superuser sees it: roles, databases, and who owns what is in them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Self

from psycopg import Connection, OperationalError, connect
from psycopg import Error as PostgresError
from psycopg.sql import SQL, Identifier, Literal

from gamelake.model.credentials import ServerCredentials
from services.provision.provisioning import ServiceRefusedError, ServiceSilentError

SUPERUSER = "postgres"
_ANSWER_SECONDS = 10
_REFUSED = ("password authentication failed", "no password supplied")
# What a role may do beside owning things, by its column in pg_roles.
_RIGHTS: Mapping[str, str] = MappingProxyType(
    {
        "rolsuper": "everything",
        "rolcreatedb": "make databases",
        "rolcreaterole": "make roles",
        "rolreplication": "replicate",
        "rolbypassrls": "pass by row security",
    }
)
_ORDINARY = SQL("NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS")
# Tables, views, sequences and the like; a sequence that belongs to a column, and an index, follow their table.
_STRANGERS = SQL(
    """
    SELECT n.nspname, c.relname
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_roles r ON r.oid = c.relowner
    WHERE n.nspname NOT LIKE 'pg\\_%%' AND n.nspname <> 'information_schema' AND r.rolname <> %s
      AND c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f')
      AND NOT (c.relkind = 'S' AND EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype IN ('a', 'i')))
    """
)


class Postgres:
    """A server whose roles and databases can be seen and changed; open for the length of a `with`."""

    def __init__(self, host: str, password: str) -> None:
        self._host = host
        self._superuser = ServerCredentials(SUPERUSER, password)
        self._connection: Connection[tuple[Any, ...]] | None = None

    def __enter__(self) -> Self:
        """Connects at the first question."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let the server go."""
        if self._connection is not None:
            self._connection.close()

    def databases(self) -> dict[str, str]:
        """All databases but the templates, with their owners.

        Raises:
            ServiceSilentError: the server gave no answer, or is not ready yet.
            ServiceRefusedError: it does not take the superuser's password.
        """
        statement = "SELECT datname, pg_get_userbyid(datdba) FROM pg_database WHERE NOT datistemplate"
        return {str(name): str(owner) for name, owner in self._ask(SQL(statement))}

    def roles(self) -> dict[str, set[str]]:
        """All roles that may log in, each with what it may do beside owning things."""
        statement = SQL("SELECT rolname, {} FROM pg_roles WHERE rolcanlogin").format(
            SQL(", ").join(Identifier(column) for column in _RIGHTS)
        )
        rows = self._ask(statement)
        return {str(name): {_RIGHTS[c] for c, has in zip(_RIGHTS, rest, strict=True) if has} for name, *rest in rows}

    def create_role(self, role: ServerCredentials) -> None:
        """Make a role that may log in, and nothing else."""
        name, password = Identifier(role.username), Literal(self._as_kept(role))
        self._do(SQL("CREATE ROLE {} LOGIN {} PASSWORD {}").format(name, _ORDINARY, password))

    def set_password(self, role: ServerCredentials) -> None:
        """Give a role another password."""
        name, password = Identifier(role.username), Literal(self._as_kept(role))
        self._do(SQL("ALTER ROLE {} PASSWORD {}").format(name, password))

    def make_ordinary(self, role: str) -> None:
        """Take from a role all that it may do beside owning things."""
        self._do(SQL("ALTER ROLE {} {}").format(Identifier(role), _ORDINARY))

    def knows(self, role: ServerCredentials) -> bool:
        """Whether the server takes this role with this password, wherever it may then go."""
        try:
            self._connect(role, SUPERUSER).close()
        except ServiceRefusedError:
            return False
        except ServiceSilentError as error:
            # It looks at the password before it looks at who may come.
            if "permission denied for database" not in str(error):
                raise
        return True

    def create_database(self, name: str) -> None:
        """Make a database that the role of its name owns."""
        self._do(SQL("CREATE DATABASE {} OWNER {}").format(Identifier(name), Identifier(name)))

    def give_database(self, name: str) -> None:
        """Make the role of its name the owner of a database."""
        self._do(SQL("ALTER DATABASE {} OWNER TO {}").format(Identifier(name), Identifier(name)))

    def give_what_is_in(self, database: str) -> int:
        """Make the role of its name the owner of what others have made in a database; gives how much that was."""
        with self._connect(self._superuser, database) as connection, _answers():
            found = connection.execute(_STRANGERS, (database,)).fetchall()
            for schema, name in found:
                statement = SQL("ALTER TABLE {} OWNER TO {}")
                connection.execute(statement.format(Identifier(schema, name), Identifier(database)))
        return len(found)

    def may_empty_log(self, owner: str) -> bool:
        """Whether a database's owner may begin a new file of the server's log, and have the old ones left behind."""
        statement = "SELECT pg_has_role(%s, 'pg_checkpoint', 'USAGE') AND has_function_privilege(%s, %s, 'EXECUTE')"
        with self._connect(self._superuser, owner) as connection, _answers():
            (may,) = connection.execute(statement, (owner, owner, "pg_switch_wal()")).fetchone() or (False,)
        return bool(may)

    def let_empty_log(self, owner: str) -> None:
        """Give a database's owner that right."""
        # Functions belong to a database: the right holds in the owner's own alone.
        with self._connect(self._superuser, owner) as connection, _answers():
            connection.execute(SQL("GRANT pg_checkpoint TO {}").format(Identifier(owner)))
            connection.execute(SQL("GRANT EXECUTE ON FUNCTION pg_switch_wal() TO {}").format(Identifier(owner)))

    def open_to_everybody(self) -> list[str]:
        """Databases that any role may connect to, the server's own too."""
        statement = SQL(
            "SELECT datname FROM pg_database WHERE NOT datistemplate AND"
            " (has_database_privilege('public', oid, 'CONNECT') OR has_database_privilege('public', oid, 'TEMP'))"
        )
        return sorted(str(name) for (name,) in self._ask(statement))

    def close_to_others(self, database: str) -> None:
        """Keep everybody but its owner out of a database."""
        self._do(SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(Identifier(database)))

    def _as_kept(self, role: ServerCredentials) -> str:
        """The password as the server keeps it, so that it is in none of its logs and not on the wire."""
        kept = self._server().pgconn.encrypt_password(role.password.encode(), role.username.encode(), b"scram-sha-256")
        return kept.decode()

    def _ask(self, statement: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401 # psycopg's composed statements
        with _answers():
            return self._server().execute(statement).fetchall()

    def _do(self, statement: Any) -> None:  # noqa: ANN401 # see above
        with _answers():
            self._server().execute(statement)

    def _server(self) -> Connection[tuple[Any, ...]]:
        if self._connection is None:
            self._connection = self._connect(self._superuser, SUPERUSER)
        return self._connection

    def _connect(self, who: ServerCredentials, database: str) -> Connection[tuple[Any, ...]]:
        try:
            return connect(
                host=self._host,
                dbname=database,
                user=who.username,
                password=who.password,
                connect_timeout=_ANSWER_SECONDS,
                autocommit=True,
            )
        except OperationalError as error:
            if any(word in str(error) for word in _REFUSED):
                problem = f"PostgreSQL refuses the password of {who.username}"
                remedy = "it keeps the one of its first start; put that back into compose/secrets/postgres-password"
                raise ServiceRefusedError(f"{problem}: {remedy}") from error
            raise ServiceSilentError(f"PostgreSQL does not answer: {error}") from error


@contextmanager
def _answers() -> Iterator[None]:
    try:
        yield
    except OperationalError as error:
        raise ServiceSilentError(f"PostgreSQL does not answer: {error}") from error
    except PostgresError as error:
        raise ServiceRefusedError(f"PostgreSQL refuses: {error}") from error
