"""What the catalog service registers in Trino and what it leaves, with a fake Trino and a lakehouse in a folder."""

import json
import logging
from datetime import timedelta
from pathlib import Path
from threading import Event

import pytest
from prometheus_client import CollectorRegistry
from trino.exceptions import TrinoExternalError, TrinoQueryError, TrinoUserError

from gamelake.model.errors import StoreUnavailableError, TransientError
from gamelake.model.naming import Layer
from gamelake.objects.store import Location, Store
from gamelake.observability.metrics.endpoint import Heartbeat
from gamelake.trino import TrinoAccess
from services.catalog.errors import RegistrationRefusedError, TableError, TrinoUnavailableError
from services.catalog.metrics import CatalogMetrics
from services.catalog.registration import Registrar, Registrations
from services.catalog.runs import CatalogLoop, CatalogSteps, RunIntervals
from services.catalog.settings import TrinoSettings
from services.catalog.table_statistics import LogReader, StatisticsTracker
from services.catalog.tables import CatalogTable, TableFinder
from services.catalog.trino import TrinoCatalog
from tests.support.failing import failing
from tests.support.logged import logged

SETTINGS = TrinoSettings(access=TrinoAccess("nowhere", 1, "http", "catalog"), catalog="delta")
GONE = 4


class RememberingTrino(TrinoCatalog):
    """Keeps entries as Trino's file metastore does, and counts statements."""

    def __init__(self, metastore: Store) -> None:
        super().__init__(SETTINGS)
        self._metastore = metastore
        self.names: dict[CatalogTable, str] = {}
        self.calls: list[str] = []
        self.refused: set[CatalogTable] = set()
        self.is_silent = False

    def tables(self) -> frozenset[CatalogTable]:
        self._called("tables")
        return frozenset(self.names)

    def create_schema(self, layer: Layer) -> None:
        """Schemas are ignored."""
        self._called(f"schema {layer}")

    def register(self, table: CatalogTable, location: str) -> str | None:
        """As Trino: the id of the query, or None for a name that is taken."""
        self._called(f"register {table}")
        if table in self.refused:
            raise RegistrationRefusedError(f"Trino does not take {table}")
        if table in self.names:
            return None
        return self.name(table, location)

    def unregister(self, table: CatalogTable) -> None:
        self._called(f"unregister {table}")
        if table in self.refused:
            raise RegistrationRefusedError(f"Trino keeps {table}")
        del self.names[table]

    def flush_log(self, table: CatalogTable) -> None:
        """Only counted."""
        self._called(f"forget {table}")

    def name(self, table: CatalogTable, location: str) -> str:
        """Register a table, as any client can; returns the id of the query."""
        self.names[table] = f"query_{len(self.calls)}"
        entry = {"externalLocation": location, "parameters": {"trino_query_id": self.names[table]}}
        self._metastore.put(f"{table.layer}/{table.name}/.trinoSchema", json.dumps(entry).encode())
        return self.names[table]

    def _called(self, what: str) -> None:
        if self.is_silent:
            raise TrinoUnavailableError("Trino is not available")
        self.calls.append(what)


class RegistrarFixture:
    """A lakehouse in a folder, a Trino, and the service between them."""

    def __init__(self, folder: Path) -> None:
        self.location = Location(uri=(folder / "lakehouse").as_uri())
        self.store = Store(self.location)
        self.metastore = Store(Location(uri=(folder / "metastore").as_uri()))
        self.trino = RememberingTrino(self.metastore)
        self.now = 0.0
        self.finder = TableFinder(self.store)
        self.registrar = self.service(self.metastore)

    def service(self, metastore: Store | None) -> Registrar:
        return Registrar(self.location, self.trino, Registrations(self.store, metastore), clock=lambda: self.now)

    def runs(self, count: int = 1) -> int:
        """Do runs. Return how many tables Trino knows."""
        known = 0
        for _ in range(count):
            known, _ = self.registrar.synchronize(self.finder.find())
        return known

    def make(self, table: CatalogTable) -> None:
        """A table's first commit."""
        self.store.put(f"{table}/_delta_log/{0:020}.json", b'{"commitInfo": {}}\n')

    def remove(self, table: CatalogTable) -> None:
        folder = Path(self.location.uri.removeprefix("file://")) / str(table)
        (folder / "_delta_log" / f"{0:020}.json").unlink()
        (folder / "_delta_log").rmdir()
        folder.rmdir()


@pytest.fixture
def scene(tmp_path: Path) -> RegistrarFixture:
    scene = RegistrarFixture(tmp_path)
    scene.make(EVENTS)
    return scene


EVENTS, CHESS = CatalogTable(Layer.SILVER, "events"), CatalogTable(Layer.SILVER, "chess_events")


def test_a_table_is_registered_once_and_then_no_query_is_sent(scene: RegistrarFixture) -> None:
    assert scene.runs(3) == 1
    assert scene.trino.calls == ["tables", "schema silver", "register silver/events"]


def test_a_folder_becomes_a_table_with_its_first_commit(scene: RegistrarFixture) -> None:
    scene.store.put(f"{CHESS}/part.parquet", b"written and not committed")
    assert scene.runs() == 1

    scene.make(CHESS)

    assert scene.runs() == 2


def test_a_name_that_is_no_plain_sql_name_is_ignored_and_logged_once(
    scene: RegistrarFixture, caplog: pytest.LogCaptureFixture
) -> None:
    scene.store.put("silver/Chess'); DROP/_delta_log/00000000000000000000.json", b"{}")
    with caplog.at_level(logging.WARNING):
        assert scene.runs(3) == 1

    assert [each["path"] for each in logged(caplog, "table_ignored")] == ["silver/Chess'); DROP"]


def test_a_restarted_service_keeps_the_registrations(scene: RegistrarFixture) -> None:
    scene.runs()
    scene.registrar = scene.service(scene.metastore)

    assert scene.runs(2) == 1
    assert scene.trino.calls[3:] == ["tables"]


def test_a_table_that_is_missing_for_some_runs_is_unregistered(scene: RegistrarFixture) -> None:
    scene.runs()
    scene.remove(EVENTS)
    scene.runs()
    assert EVENTS in scene.trino.names

    scene.runs(GONE)

    assert EVENTS not in scene.trino.names


def test_a_single_listing_without_a_table_has_no_effect(scene: RegistrarFixture) -> None:
    scene.runs()
    scene.remove(EVENTS)
    scene.runs()
    scene.make(EVENTS)

    assert scene.runs(GONE) == 1
    assert "unregister silver/events" not in scene.trino.calls


def test_entries_of_others_stay(scene: RegistrarFixture) -> None:
    scene.trino.name(CHESS, "s3://another/chess")
    scene.runs(GONE)

    assert CHESS in scene.trino.names


def test_an_entry_that_was_registered_again_by_another_client_stays(scene: RegistrarFixture) -> None:
    scene.runs()
    scene.trino.calls.append("another client")
    scene.trino.name(EVENTS, scene.location.child(str(EVENTS)))
    scene.remove(EVENTS)
    scene.runs(GONE)

    assert EVENTS in scene.trino.names


def test_without_access_to_the_metastore_nothing_is_unregistered(scene: RegistrarFixture) -> None:
    scene.registrar = scene.service(None)
    scene.runs()
    scene.remove(EVENTS)
    scene.runs(GONE)

    assert EVENTS in scene.trino.names


def test_a_refused_table_does_not_affect_others_and_is_retried_after_a_minute(scene: RegistrarFixture) -> None:
    scene.make(CHESS)
    scene.trino.refused = {CHESS}
    assert scene.runs(3) == 1
    assert scene.trino.calls.count(f"register {CHESS}") == 1

    scene.trino.refused = set()
    scene.now += 61

    assert scene.runs() == 2


def test_a_table_that_trino_could_not_unregister_is_unregistered_once_trino_is_back(scene: RegistrarFixture) -> None:
    scene.make(CHESS)
    scene.runs()
    scene.remove(EVENTS)
    scene.runs(2)
    scene.trino.is_silent = True
    for _ in range(5):
        with pytest.raises(TrinoUnavailableError):
            scene.runs()

    scene.trino.is_silent = False
    scene.runs()

    assert scene.trino.names.keys() == {CHESS}


def test_an_unregistration_that_trino_refuses_is_tried_again_after_a_minute(scene: RegistrarFixture) -> None:
    scene.runs()
    scene.remove(EVENTS)
    scene.trino.refused = {EVENTS}
    scene.runs(GONE + 10)
    assert scene.trino.calls.count(f"unregister {EVENTS}") == 1

    scene.trino.refused = set()
    scene.now += 61
    scene.runs()

    assert EVENTS not in scene.trino.names


class FailingAccess:
    """A Trino that fails each statement with one error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def query(self, *_: object, **__: object) -> None:
        raise self._error


@pytest.mark.parametrize("kind", ["EXTERNAL", "INTERNAL_ERROR", "INSUFFICIENT_RESOURCES", "USER_ERROR", "NEW_ONE"])
@pytest.mark.parametrize("error", [TrinoExternalError, TrinoQueryError, TrinoUserError])
def test_no_error_of_trino_for_a_schema_or_the_list_of_tables_ends_the_service(
    kind: str, error: type[TrinoQueryError]
) -> None:
    access = FailingAccess(error({"errorType": kind, "errorName": "HIVE_METASTORE_ERROR", "message": "restarting"}))
    trino = TrinoCatalog(TrinoSettings(access=access, catalog="delta"))  # type: ignore[arg-type] # it only fails

    with pytest.raises(TransientError):
        trino.create_schema(Layer.GOLD)
    with pytest.raises(TransientError):
        trino.tables()
    with pytest.raises((TransientError, TableError)):
        trino.register(EVENTS, "s3://lakehouse/silver/events")


def test_a_run_that_fails_for_any_reason_is_counted_and_the_next_one_is_done(
    scene: RegistrarFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry, stop, failures = CollectorRegistry(), Event(), [RuntimeError("a bug"), KeyError("x"), ValueError("y")]
    runs = loop_of(scene, registry, interval=timedelta(milliseconds=1))
    found = scene.finder.find

    def fail() -> frozenset[CatalogTable]:
        if failures:
            raise failures.pop()
        stop.set()
        return found()

    monkeypatch.setattr(scene.finder, "find", fail)
    runs.run(stop, Heartbeat(None))

    assert EVENTS in scene.trino.names
    # The table's log, which the test has made up, can't be measured.
    assert registry.get_sample_value("gamelake_catalog_runs_total", {"outcome": "failed"}) == 3
    assert registry.get_sample_value("gamelake_catalog_runs_total", {"outcome": "incomplete"}) == 1


def test_an_entry_that_was_removed_is_registered_again_after_a_minute(scene: RegistrarFixture) -> None:
    scene.runs()
    scene.trino.names.clear()
    scene.runs()
    assert EVENTS not in scene.trino.names

    scene.now += 61
    scene.runs()

    assert EVENTS in scene.trino.names


def loop_of(
    scene: RegistrarFixture, registry: CollectorRegistry, interval: timedelta = timedelta(seconds=2)
) -> CatalogLoop:
    statistics = StatisticsTracker(LogReader(scene.location), on_replaced=scene.registrar.reload_log)
    pace = RunIntervals(interval=interval, measure_interval=timedelta(0))
    return CatalogLoop(CatalogSteps(scene.finder, scene.registrar, statistics), CatalogMetrics(registry), pace)


def test_an_unavailable_trino_fails_the_run_and_the_next_run_catches_up(scene: RegistrarFixture) -> None:
    registry = CollectorRegistry()
    runs = loop_of(scene, registry)
    scene.trino.is_silent = True
    with pytest.raises(TrinoUnavailableError):
        runs.once()
    assert registry.get_sample_value("gamelake_catalog_runs_total", {"outcome": "failed"}) == 1

    scene.trino.is_silent = False
    runs.once()

    assert EVENTS in scene.trino.names
    assert registry.get_sample_value("gamelake_catalog_registered_tables") == 1


def test_a_run_without_a_refused_table_ends_and_is_incomplete(scene: RegistrarFixture) -> None:
    registry = CollectorRegistry()
    scene.trino.refused = {EVENTS}
    runs = loop_of(scene, registry)
    started = registry.get_sample_value("gamelake_catalog_last_run_timestamp_seconds") or 0

    assert runs.once()

    assert (registry.get_sample_value("gamelake_catalog_last_run_timestamp_seconds") or 0) > started
    assert registry.get_sample_value("gamelake_catalog_runs_total", {"outcome": "incomplete"}) == 1
    assert registry.get_sample_value("gamelake_catalog_runs_total", {"outcome": "failed"}) == 0


def test_an_unavailable_store_is_reported_as_such(scene: RegistrarFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scene.store, "folders", failing(OSError("connection refused")))
    with pytest.raises(StoreUnavailableError, match="connection refused"):
        loop_of(scene, CollectorRegistry()).once()
