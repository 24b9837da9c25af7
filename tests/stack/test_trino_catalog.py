"""Tables and columns appear in Trino by themselves, and nothing that others made disappears from it."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from gamelake.objects.store import Location, Store
from services.catalog.errors import TableError
from services.catalog.registration import Registrar, Registrations
from services.catalog.settings import TrinoSettings
from services.catalog.tables import TableFinder
from services.catalog.trino import TrinoCatalog
from tests.embedded.sending import Sender, contract_text
from tests.stack.object_store import ObjectStore
from tests.stack.platform import ROOT, Stack
from tests.stack.trino_users import (
    ANALYST,
    CATALOG,
    COMMITTED_SECONDS,
    NewTable,
    await_answer,
    new_lakehouse,
    new_table,
    rows_of,
)
from tools.stack import trino_credentials, url

# The service polls every two seconds; the rest is for a busy machine.
SECONDS_UNTIL_NAMED = 30
RUNS_UNTIL_GONE = 4


@pytest.fixture
def place(stack: Stack) -> Iterator[Location]:
    """A lakehouse that the running service does not follow."""
    with new_lakehouse(stack) as place:
        yield place


def trino() -> TrinoCatalog:
    """The stack's Trino as the service uses it."""
    return TrinoCatalog(TrinoSettings(access=CATALOG.access, catalog="delta"))


class Service:
    """A catalog service of the test's own; a minute passes when the test says so."""

    def __init__(self, place: Location) -> None:
        store = Store(place)
        registrations = Registrations(store, metastore(place))
        self._now = 0.0
        self._finder = TableFinder(store)
        self._registrar = Registrar(place, trino(), registrations, clock=lambda: self._now)
        self.refused: list[TableError] = []

    def runs(self, count: int = 1) -> int:
        """Run the catalog. Return how many of the lakehouse's tables Trino knows after the last run."""
        known = 0
        for _ in range(count):
            known, self.refused = self._registrar.synchronize(self._finder.find())
        return known

    def a_minute_later(self) -> "Service":
        """The service when it asks Trino again."""
        self._now += 61
        return self


def metastore(place: Location) -> Store:
    """What Trino keeps of its tables."""
    return Store(Location(uri="s3://catalog", options=place.options))


def entry_of(table: NewTable) -> bytes | None:
    """What Trino keeps of one table."""
    return metastore(table.place).get(f"{table.path}/.trinoSchema")


def is_known(table: NewTable) -> bool:
    """Return True if Trino has a table by this name, whatever is behind it."""
    return entry_of(table) is not None


def run_once(place: Location, object_store: ObjectStore) -> "subprocess.CompletedProcess[str]":
    """One run of the real program on another lakehouse."""
    variables = {
        **object_store.variables(place.uri),
        "GAMELAKE_TRINO_URL": url("TRINO_PORT"),
        "GAMELAKE_TRINO_CREDENTIALS_FILE": str(trino_credentials("catalog")),
    }
    command = (sys.executable, "-m", "services.catalog", "--once")
    return subprocess.run(
        command, env={**os.environ, **variables}, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )


def test_a_new_table_appears_by_itself(stack: Stack) -> None:
    with new_table(stack.lakehouse) as table:
        table.append(number=[1, 2])

        await_answer(ANALYST, rows_of(table.sql), timeout=SECONDS_UNTIL_NAMED)

        assert sorted(ANALYST.ask(rows_of(table.sql))) == [[1], [2]]


def test_a_new_column_is_there_with_the_commit_that_brings_it(stack: Stack) -> None:
    with new_table(stack.lakehouse) as table:
        table.append(number=[1])
        await_answer(ANALYST, rows_of(table.sql), timeout=SECONDS_UNTIL_NAMED)

        table.append(number=[2], colour=["red"])

        assert sorted(ANALYST.ask(rows_of(table.sql))) == [[1, None], [2, "red"]]


def test_a_game_that_sends_a_newer_schema_has_its_columns_in_trino(sender: Sender) -> None:
    old = sender.send_events(1, "Yeti Ski", contract_text(1))[0]
    new = sender.send_events(
        1, "Yeti Ski", contract_text(3), purchase={"product_id": "skis", "quantity": 2}, attributes={"slope": "black"}
    )[0]
    columns = rows_of("silver.yeti_ski_events").replace("*", "event_id, purchase.product_id, attributes")
    question = f"{columns} WHERE event_id IN ('{old}', '{new}')"

    await_answer(ANALYST, f"{question} AND purchase IS NOT NULL", timeout=COMMITTED_SECONDS)
    await_answer(ANALYST, f"{question} AND purchase IS NULL", timeout=COMMITTED_SECONDS)
    assert {row[0]: row[1:] for row in ANALYST.ask(question)}[new] == ["skis", {"slope": "black"}]


def test_another_table_at_the_same_place_takes_the_place_of_the_first(place: Location) -> None:
    service = Service(place)
    with new_table(place) as table:
        table.append(number=[1])
        service.runs()
        table.remove()
        service.runs(RUNS_UNTIL_GONE)
        table.append(colour=["red"])
        service.runs()

        assert ANALYST.ask(rows_of(table.sql)) == [["red"]]


def test_a_second_run_and_a_second_service_change_nothing(place: Location, object_store: ObjectStore) -> None:
    service = Service(place)
    with new_table(place) as table:
        table.append(number=[1])
        assert service.runs() == 1
        entry = entry_of(table)
        assert entry

        assert service.runs() == service.a_minute_later().runs() == Service(place).runs() == 1
        for _ in range(2):
            done = run_once(place, object_store)
            assert done.returncode == 0, done.stderr
        assert entry_of(table) == entry


def test_a_table_that_is_gone_goes_from_trino_if_the_service_named_it(place: Location) -> None:
    service = Service(place)
    with new_table(place) as table:
        table.append(number=[1])
        service.runs()

        table.remove()
        service.runs()
        assert is_known(table)
        service.runs(RUNS_UNTIL_GONE)

        assert not is_known(table)


def test_what_a_person_named_stays_whatever_becomes_of_it(place: Location, stack: Stack) -> None:
    service = Service(place)
    with new_lakehouse(stack) as another, new_table(another, "by_hand_") as table:
        table.append(number=[1])
        table.register()
        service.runs(RUNS_UNTIL_GONE)
        assert ANALYST.ask(rows_of(table.sql)) == [[1]]

        table.remove()
        service.a_minute_later().runs(RUNS_UNTIL_GONE)

        assert is_known(table)


def test_a_service_with_no_tables_takes_no_table_from_another(place: Location, stack: Stack) -> None:
    with new_table(stack.lakehouse) as table:
        table.append(number=[1])
        await_answer(ANALYST, rows_of(table.sql), timeout=SECONDS_UNTIL_NAMED)
        known = trino().tables()

        Service(place).runs(RUNS_UNTIL_GONE)

        assert trino().tables() >= {each for each in known if not each.name.startswith("test_")}
        assert is_known(table)


def test_a_name_that_a_person_took_over_stays_too(place: Location) -> None:
    service = Service(place)
    with new_table(place) as table:
        table.append(number=[1])
        service.runs()
        table.forget()
        table.register()

        table.remove()
        service.a_minute_later().runs(RUNS_UNTIL_GONE)

        assert is_known(table)


def test_a_broken_log_stops_no_other_table_and_is_named_when_it_is_whole(
    place: Location, object_store: ObjectStore
) -> None:
    service = Service(place)
    with new_table(place, "a_") as broken, new_table(place, "b_") as whole:
        broken.spoil()
        whole.append(number=[1])

        assert service.runs() == 1
        assert [broken.path in str(error) for error in service.refused] == [True]
        assert ANALYST.ask(rows_of(whole.sql)) == [[1]]
        done = run_once(place, object_store)
        assert done.returncode == 1
        assert broken.path in done.stderr

        broken.remove()
        broken.append(number=[2])
        assert service.a_minute_later().runs() == 2
        assert ANALYST.ask(rows_of(broken.sql)) == [[2]]
