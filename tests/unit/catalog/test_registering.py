"""What the catalog service tells Trino, and what it never does: a Trino that remembers, and a lakehouse of folders."""

import json
import logging
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from gamelake.model.naming import Layer
from gamelake.storage.store import Location, Store
from services.catalog.errors import RegistrationRefusedError, StoreSilentError, TrinoSilentError
from services.catalog.metrics import CatalogMetrics
from services.catalog.registration import Registrar, Registrations
from services.catalog.runs import Pace, Rounds, Steps
from services.catalog.settings import TrinoSettings
from services.catalog.table_statistics import LogReader, Measuring
from services.catalog.tables import Table, TableFinder
from services.catalog.trino import TrinoCatalog

SETTINGS = TrinoSettings(host="nowhere", port=1, scheme="http", user="catalog", catalog="delta")
GONE = 4


class RememberingTrino(TrinoCatalog):
    """Keeps entries as Trino's file metastore does, and counts what it is asked."""

    def __init__(self, metastore: Store) -> None:
        super().__init__(SETTINGS)
        self._metastore = metastore
        self.names: dict[Table, str] = {}
        self.calls: list[str] = []
        self.refused: set[Table] = set()
        self.is_silent = False

    def tables(self) -> frozenset[Table]:
        """What it knows."""
        self._called("tables")
        return frozenset(self.names)

    def create_schema(self, layer: Layer) -> None:
        """Schemas are not the tests' business."""
        self._called(f"schema {layer}")

    def register(self, table: Table, location: str) -> str | None:
        """As Trino: the id of the query, or None for a name that is taken."""
        self._called(f"register {table}")
        if table in self.refused:
            raise RegistrationRefusedError(f"Trino does not take {table}")
        if table in self.names:
            return None
        return self.name(table, location)

    def unregister(self, table: Table) -> None:
        """Forget a name."""
        self._called(f"unregister {table}")
        del self.names[table]

    def forget_log(self, table: Table) -> None:
        """Only counted."""
        self._called(f"forget {table}")

    def name(self, table: Table, location: str) -> str:
        """Name a table, as anybody may; gives the id of the query."""
        self.names[table] = f"query_{len(self.calls)}"
        entry = {"externalLocation": location, "parameters": {"trino_query_id": self.names[table]}}
        self._metastore.put(f"{table.layer}/{table.name}/.trinoSchema", json.dumps(entry).encode())
        return self.names[table]

    def _called(self, what: str) -> None:
        if self.is_silent:
            raise TrinoSilentError("Trino does not answer")
        self.calls.append(what)


class Scene:
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
        """The service as it starts."""
        return Registrar(self.location, self.trino, Registrations(self.store, metastore), clock=lambda: self.now)

    def rounds(self, count: int = 1) -> int:
        """Do rounds; gives how many tables Trino knows."""
        known = 0
        for _ in range(count):
            known, _ = self.registrar.bring_in_line(self.finder.find())
        return known

    def make(self, table: Table) -> None:
        """A table's first commit."""
        self.store.put(f"{table}/_delta_log/{0:020}.json", b'{"commitInfo": {}}\n')

    def remove(self, table: Table) -> None:
        """Take a table away."""
        folder = Path(self.location.uri.removeprefix("file://")) / str(table)
        (folder / "_delta_log" / f"{0:020}.json").unlink()
        (folder / "_delta_log").rmdir()
        folder.rmdir()


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A lakehouse with one table."""
    scene = Scene(tmp_path)
    scene.make(EVENTS)
    return scene


EVENTS, CHESS = Table(Layer.SILVER, "events"), Table(Layer.SILVER, "chess_events")


def test_a_table_is_registered_once_and_then_nothing_is_asked(scene: Scene) -> None:
    assert scene.rounds(3) == 1
    assert scene.trino.calls == ["tables", "schema silver", "register silver/events"]


def test_a_folder_becomes_a_table_with_its_first_commit(scene: Scene) -> None:
    scene.store.put(f"{CHESS}/part.parquet", b"written and not committed")
    assert scene.rounds() == 1

    scene.make(CHESS)

    assert scene.rounds() == 2


def test_a_name_that_sql_would_read_otherwise_is_passed_over_and_told_once(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.store.put("silver/Chess'); DROP/_delta_log/00000000000000000000.json", b"{}")
    with caplog.at_level(logging.WARNING):
        assert scene.rounds(3) == 1

    assert len([line for line in caplog.messages if "passed over" in line]) == 1


def test_a_service_that_starts_again_takes_the_names_as_they_are(scene: Scene) -> None:
    scene.rounds()
    scene.registrar = scene.service(scene.metastore)

    assert scene.rounds(2) == 1
    assert scene.trino.calls[3:] == ["tables"]


def test_a_table_that_is_gone_for_some_rounds_is_unregistered(scene: Scene) -> None:
    scene.rounds()
    scene.remove(EVENTS)
    scene.rounds()
    assert EVENTS in scene.trino.names

    scene.rounds(GONE)

    assert EVENTS not in scene.trino.names


def test_a_listing_that_misses_a_table_for_once_costs_nothing(scene: Scene) -> None:
    scene.rounds()
    scene.remove(EVENTS)
    scene.rounds()
    scene.make(EVENTS)

    assert scene.rounds(GONE) == 1
    assert "unregister silver/events" not in scene.trino.calls


def test_what_the_service_did_not_name_stays(scene: Scene) -> None:
    scene.trino.name(CHESS, "s3://elsewhere/chess")
    scene.rounds(GONE)

    assert CHESS in scene.trino.names


def test_a_name_that_somebody_gave_anew_stays(scene: Scene) -> None:
    scene.rounds()
    scene.trino.calls.append("somebody comes")
    scene.trino.name(EVENTS, scene.location.child(str(EVENTS)))
    scene.remove(EVENTS)
    scene.rounds(GONE)

    assert EVENTS in scene.trino.names


def test_without_a_look_at_the_metastore_nothing_is_taken_away(scene: Scene) -> None:
    scene.registrar = scene.service(None)
    scene.rounds()
    scene.remove(EVENTS)
    scene.rounds(GONE)

    assert EVENTS in scene.trino.names


def test_a_refused_table_stops_no_other_and_is_tried_again_after_a_minute(scene: Scene) -> None:
    scene.make(CHESS)
    scene.trino.refused = {CHESS}
    assert scene.rounds(3) == 1
    assert scene.trino.calls.count(f"register {CHESS}") == 1

    scene.trino.refused = set()
    scene.now += 61

    assert scene.rounds() == 2


def test_a_name_that_somebody_took_away_is_given_again_after_a_minute(scene: Scene) -> None:
    scene.rounds()
    scene.trino.names.clear()
    scene.rounds()
    assert EVENTS not in scene.trino.names

    scene.now += 61
    scene.rounds()

    assert EVENTS in scene.trino.names


def rounds_of(scene: Scene, registry: CollectorRegistry) -> Rounds:
    measuring = Measuring(LogReader(scene.location), on_replaced=scene.registrar.read_anew)
    pace = Pace(interval=timedelta(seconds=2), measure_interval=timedelta(0))
    return Rounds(Steps(scene.finder, scene.registrar, measuring), CatalogMetrics(registry), pace)


def test_a_trino_that_is_silent_fails_the_round_and_the_next_one_makes_up_for_it(scene: Scene) -> None:
    registry = CollectorRegistry()
    rounds = rounds_of(scene, registry)
    scene.trino.is_silent = True
    with pytest.raises(TrinoSilentError):
        rounds.once()
    assert registry.get_sample_value("gamelake_catalog_runs_total", {"outcome": "failed"}) == 1

    scene.trino.is_silent = False
    rounds.once()

    assert EVENTS in scene.trino.names
    assert registry.get_sample_value("gamelake_catalog_registered_tables") == 1


def test_a_store_that_is_silent_is_told_as_such(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_answer(_: str) -> list[str]:
        raise OSError("connection refused")

    monkeypatch.setattr(scene.store, "folders", no_answer)
    with pytest.raises(StoreSilentError, match="connection refused"):
        rounds_of(scene, CollectorRegistry()).once()
