"""Access to Trino: its address and a user, with a password where it is reached by HTTPS."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from trino.auth import BasicAuthentication
from trino.dbapi import Connection, connect

from gamelake.model.credentials import read_credentials
from gamelake.model.environment import Environment
from gamelake.model.errors import SettingsError

CATALOG = "delta"
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The result of a statement: the columns' names, the rows, and the query's id in Trino."""

    columns: list[str]
    rows: list[list[Any]]
    query_id: str


@dataclass(frozen=True, slots=True)
class TrinoAccess:
    """Trino's address and a user; `repr` leaves out the password."""

    host: str
    port: int
    scheme: str
    user: str
    password: str = field(default="", repr=False)

    @classmethod
    def parse(cls, url: str, user: str, password: str = "", setting: str = "the address of Trino") -> "TrinoAccess":
        """Parse the access from a URL, which `setting` names in messages.

        Raises:
            SettingsError: the URL is malformed.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        if parts.scheme not in _PORTS or not parts.hostname or parts.path.strip("/"):
            raise SettingsError(f"{setting} is '{url}'; it must be like https://trino:8080")
        return cls(parts.hostname, port or _PORTS[parts.scheme], parts.scheme, user, password)

    def connect(
        self,
        source: str,
        *,
        catalog: str = CATALOG,
        seconds: float | None = None,
        attempts: int | None = None,
        session: Mapping[str, str] | None = None,
    ) -> Connection:
        """Open a connection; nothing is sent before the first statement.

        The authorities that may have signed the server's certificate are those of requests: REQUESTS_CA_BUNDLE, or its
        own list.

        Args:
            source: the name of the program in Trino's list of queries.
            catalog: the catalog of names without one.
            seconds: how long each request may take; the client's default if None.
            attempts: how often a request is sent while Trino is not available; the client's default if None.
            session: session properties; the user must be allowed to set them.
        """
        options: dict[str, object] = {}
        if seconds is not None:
            options["request_timeout"] = seconds
        if attempts is not None:
            options["max_attempts"] = attempts
        if session is not None:
            options["session_properties"] = dict(session)
        if self.password and self.scheme == "https":
            options["auth"] = BasicAuthentication(self.user, self.password)
        return connect(  # type: ignore[no-untyped-call, no-any-return] # it takes whatever Connection takes
            host=self.host, port=self.port, http_scheme=self.scheme, user=self.user, catalog=catalog, source=source,
            **options,
        )  # fmt: skip

    def query(
        self,
        sql: str,
        source: str,
        *,
        catalog: str = CATALOG,
        seconds: float | None = None,
        attempts: int | None = None,
    ) -> QueryResult:
        """Run a statement by a connection of its own; other arguments as of `connect`.

        Raises:
            TrinoQueryError: Trino refuses the statement, or it failed.
            TrinoConnectionError: Trino is not available.
            HttpError: Trino refuses the request, as with a wrong password.
        """
        connection = self.connect(source, catalog=catalog, seconds=seconds, attempts=attempts)
        try:
            cursor = connection.cursor()
            cursor.execute(sql)
            rows = [list(row) for row in cursor.fetchall()]
            return QueryResult([str(column[0]) for column in cursor.description or ()], rows, str(cursor.query_id))
        finally:
            connection.close()  # type: ignore[no-untyped-call] # untyped


def trino_access(env: Environment, *, url: str, credentials_file: str, user: str, default_user: str) -> TrinoAccess:
    """Read the access from settings: the address, and a file with the user's name and password.

    Args:
        env: the variables.
        url: the variable that has the address.
        credentials_file: the variable that names the file.
        user: the variable that has the user's name, where there is no file.
        default_user: the user if neither is set.

    Raises:
        SettingsError: a variable is missing or malformed, or the file can't be read or has another form.
    """
    address, file = env.required(url), env.path(credentials_file)
    if file is None:
        return TrinoAccess.parse(address, env.optional(user, default_user), setting=url)
    found = read_credentials(file, credentials_file)
    return TrinoAccess.parse(address, found.username, found.password, url)
