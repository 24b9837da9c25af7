"""Trino of the running stack as its users see it, and tables that a test makes for it."""

import json
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake
from trino.exceptions import TrinoQueryError

from gamelake.objects.store import Location, Store
from gamelake.trino import TrinoAccess
from tests.stack.object_store import ObjectStore
from tests.stack.platform import Stack, stack_sender
from tests.support.eventually import eventually
from tools.stack import trino

# A first query on a busy machine compiles what the later ones use.
APPEARS_SECONDS = 60
# A query that has just started again comes first.
COMMITTED_SECONDS = 180


@dataclass(frozen=True, slots=True)
class User:
    """A user of Trino, with the password that the stack has made."""

    name: str

    @property
    def access(self) -> TrinoAccess:
        return trino(self.name)

    def ask(self, sql: str) -> list[list[Any]]:
        """The rows of a result.

        Raises:
            TrinoQueryError: Trino refuses, or can't.
        """
        return self.access.query(sql, "gamelake-tests").rows

    def records(self, sql: str) -> list[dict[str, Any]]:
        """The rows of a result, each by the names of its columns.

        Raises:
            TrinoQueryError: Trino refuses, or can't.
        """
        result = self.access.query(sql, "gamelake-tests")
        return [dict(zip(result.columns, row, strict=True)) for row in result.rows]

    def one(self, sql: str) -> Any:  # noqa: ANN401 # whatever the column holds
        """The only value of an answer."""
        [[value]] = self.ask(sql)
        return value

    def refusal(self, sql: str) -> str:
        """Return the name by which Trino refuses a statement; empty if it does not."""
        try:
            self.ask(sql)
        except TrinoQueryError as error:
            return str(error.error_name)
        return ""

    def sees(self, sql: str) -> Callable[[], bool]:
        """Return True if a question has an answer with rows by now; a table that does not exist yet has none."""

        def check() -> bool:
            try:
                return bool(self.ask(sql))
            except TrinoQueryError as error:
                if error.error_name in {"TABLE_NOT_FOUND", "SCHEMA_NOT_FOUND", "COLUMN_NOT_FOUND"}:
                    return False
                raise

        return check


def rows_of(table: str) -> str:
    """The question for a table's rows."""
    return f"SELECT * FROM {table}"  # noqa: S608 # a test's own table


ANALYST, ENGINEER, CATALOG = User("analyst"), User("engineer"), User("catalog")
SUPPORT, ADMIN = User("support"), User("admin")


def await_answer(user: User, sql: str, timeout: float = APPEARS_SECONDS) -> None:
    """Wait until a question has an answer."""
    eventually(user.sees(sql), timeout=timeout)


def fill(tables: Sequence[str], game: str = "Archery Duel") -> None:
    """Make sure that tables, one game's among them, have rows, and that Trino shows them."""
    questions = [f"SELECT 1 FROM {table} LIMIT 1" for table in tables]  # noqa: S608 # names of our own
    if not all(ENGINEER.sees(question)() for question in questions):
        sender = stack_sender()
        sender.send_events(1, game)
        sender.send_bad([b"no protobuf"])
    for question in questions:
        await_answer(ENGINEER, question, timeout=COMMITTED_SECONDS)


@dataclass(frozen=True, slots=True)
class NewTable:
    """A new table; in gold, since the reconciliation of the other layers covers every file."""

    place: Location
    path: str

    @property
    def sql(self) -> str:
        """The name that Trino is to know it by."""
        return self.path.replace("/", ".")

    def append(self, **columns: list[Any]) -> None:
        """Add rows, and the columns that are new."""
        self.write(pa.table(columns))

    def write(self, rows: pa.Table) -> None:
        """Add rows of columns whose types matter."""
        options = dict(self.place.options)
        write_deltalake(self.place.child(self.path), rows, mode="append", schema_mode="merge", storage_options=options)

    def register(self) -> None:
        """Name it to Trino, as the catalog service would in its next run."""
        schema, name = self.path.split("/")
        CATALOG.ask(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        CATALOG.ask(f"CALL system.register_table('{schema}', '{name}', '{self.place.child(self.path)}')")

    def back_date(self, version: int, age: timedelta) -> None:
        """Make a commit of now one of an earlier time."""
        path = f"{self.path}/_delta_log/{version:020}.json"
        store = Store(self.place)
        actions = [json.loads(line) for line in (store.get(path) or b"").splitlines()]
        for action in actions:
            if "commitInfo" in action:
                action["commitInfo"]["timestamp"] -= age // timedelta(milliseconds=1)
        store.put(path, b"".join(json.dumps(action).encode() + b"\n" for action in actions))

    def spoil(self) -> None:
        Store(self.place).put(f"{self.path}/_delta_log/00000000000000000000.json", b'{"metaData": no JSON\n')

    def remove(self) -> None:
        bucket, _, folder = self.place.uri.removeprefix("s3://").partition("/")
        client = ObjectStore.of_the_tests().client
        prefix = "/".join(part for part in (folder, self.path, "") if part)
        for found in client.list_objects(bucket, prefix, recursive=True):
            client.remove_object(bucket, str(found.object_name))

    def forget(self) -> None:
        """Take its name out of Trino, if it has one."""
        schema, name = self.path.split("/")
        CATALOG.refusal(f"CALL system.unregister_table('{schema}', '{name}')")
        bucket, _, folder = self.place.uri.removeprefix("s3://").partition("/")
        note = "/".join(part for part in (folder, f"_gamelake/catalog/registrations/{self.path}.json") if part)
        ObjectStore.of_the_tests().client.remove_object(bucket, note)


@contextmanager
def new_table(place: Location, name: str = "") -> Iterator[NewTable]:
    """A place for a table in a lakehouse; files and name are gone after the block."""
    table = NewTable(place, f"gold/test_{name}{uuid.uuid4().hex[:12]}")
    try:
        yield table
    finally:
        table.remove()
        table.forget()


@contextmanager
def known_by_another_name(place: Location, tables: Collection[str]) -> Iterator[Mapping[str, str]]:
    """Name a lakehouse's tables to Trino, each by a new name; the names are gone after the block."""
    given = {table: f"gold.test_{uuid.uuid4().hex[:12]}" for table in sorted(tables)}
    CATALOG.ask("CREATE SCHEMA IF NOT EXISTS gold")
    try:
        for table, name in given.items():
            location = place.child(table.replace(".", "/", 1))
            CATALOG.ask(f"CALL system.register_table('gold', '{name.removeprefix('gold.')}', '{location}')")
        yield given
    finally:
        for name in given.values():
            CATALOG.refusal(f"CALL system.unregister_table('gold', '{name.removeprefix('gold.')}')")


@contextmanager
def new_lakehouse(stack: Stack) -> Iterator[Location]:
    """A lakehouse that the running catalog service does not follow and Trino can read; empty after the block."""
    place = Location(uri=f"s3://lakehouse/test-{uuid.uuid4().hex[:12]}", options=stack.lakehouse.options)
    try:
        yield place
    finally:
        store = ObjectStore.of_the_tests().client
        for found in store.list_objects("lakehouse", place.uri.removeprefix("s3://lakehouse/") + "/", recursive=True):
            store.remove_object("lakehouse", str(found.object_name))
