"""Trino's views are synchronized with the files and the tables; views of others are not changed."""

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from gamelake.model.naming import Layer
from gamelake.objects.store import Location, Store
from gamelake.serving.sql.views import View, load_views
from gamelake.trino import TrinoAccess
from services.catalog.errors import TrinoUnavailableError, ViewRefusedError
from services.catalog.settings import TrinoSettings
from services.catalog.tables import CatalogTable
from services.catalog.trino import TrinoViews
from services.catalog.views import ViewFiles, ViewSync

ROOT = Path(__file__).parents[3]
SETTINGS = TrinoSettings(access=TrinoAccess("nowhere", 1, "http", "views"), catalog="delta")
EVENTS, CHESS, POOL = (
    CatalogTable(Layer.SILVER, "events"),
    CatalogTable(Layer.GOLD, "chess_player_agg"),
    CatalogTable(Layer.GOLD, "pool_player_agg"),
)
SESSIONS, PLAYERS = "silver.sessions", "gold.players"


class RememberingTrino(TrinoViews):
    """Keeps views as Trino does, with its own definitions, and counts statements."""

    def __init__(self) -> None:
        super().__init__(SETTINGS)
        self.views: dict[str, str] = {}
        self.calls: list[str] = []
        self.refused: set[str] = set()
        self.is_silent = False

    def definitions(self) -> Mapping[str, str]:
        if self.is_silent:
            raise TrinoUnavailableError("Trino is not available")
        self.calls.append("definitions")
        return dict(self.views)

    def make(self, view: View, statement: str) -> None:
        """As Trino: the definition is not the text that was given."""
        self.calls.append(f"make {view.name}")
        if view.name in self.refused:
            raise ViewRefusedError(f"Trino refuses the view {view.name}")
        self.views[view.name] = " ".join(statement.split()).lower()

    def drop(self, name: str) -> None:
        self.calls.append(f"drop {name}")
        del self.views[name]


class ViewsFixture:
    """Files of views, a lakehouse, a Trino, and the service between them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "views"
        self.store = Store(Location(uri=(folder / "lakehouse").as_uri()))
        self.trino = RememberingTrino()
        self.now = 0.0
        self.games = folder / "games.yaml"
        self.games.write_text("games: [{name: chess, match: [Chess]}, {name: pool, match: [Pool]}]\n")
        shutil.copy(ROOT / "contracts/metrics.yaml", folder)
        self.write(SESSIONS, "SELECT a FROM silver.events")
        self.write(PLAYERS, "SELECT '{game_name}' AS a FROM gold.{game}_player_agg")
        self.keeper = self.service()

    def service(self) -> ViewSync:
        return ViewSync(ViewFiles(self.folder, self.games), self.trino, self.store, clock=lambda: self.now)

    def write(self, name: str, sql: str) -> None:
        each = "-- For each game: all.\n" if "{game}" in sql else ""
        self.file(name).parent.mkdir(parents=True, exist_ok=True)
        self.file(name).write_text(f"-- What it is.\n-- Grain: one row per a.\n{each}-- Column a: what a is\n{sql}\n")

    def file(self, name: str) -> Path:
        return self.folder / (name.replace(".", "/") + ".sql")

    def run_service(self, *tables: CatalogTable) -> list[str]:
        """A run a minute later; returns the statements sent to Trino."""
        self.now += 61
        self.trino.calls.clear()
        self.keeper.synchronize(frozenset(tables))
        return [call for call in self.trino.calls if call != "definitions"]


@pytest.fixture
def scene(tmp_path: Path) -> ViewsFixture:
    return ViewsFixture(tmp_path)


def test_a_view_is_created_when_its_tables_exist(scene: ViewsFixture) -> None:
    assert scene.run_service() == []
    assert scene.run_service(EVENTS) == [f"make {SESSIONS}"]
    assert scene.run_service(EVENTS, CHESS) == [f"make {PLAYERS}"]
    assert "pool" not in scene.trino.views[PLAYERS]


def test_a_game_is_added_to_the_view_of_all_games_with_its_first_table(scene: ViewsFixture) -> None:
    scene.run_service(EVENTS, CHESS)

    assert scene.run_service(EVENTS, CHESS, POOL) == [f"make {PLAYERS}"]
    assert "gold.pool_player_agg" in scene.trino.views[PLAYERS]


def test_a_restarted_service_has_nothing_to_do(scene: ViewsFixture) -> None:
    scene.run_service(EVENTS, CHESS)
    scene.keeper = scene.service()

    assert scene.run_service(EVENTS, CHESS) == []


def test_a_run_without_changes_sends_no_query(scene: ViewsFixture) -> None:
    tables = frozenset({EVENTS})
    scene.keeper.synchronize(tables)
    scene.trino.calls.clear()

    scene.keeper.synchronize(tables)

    assert scene.trino.calls == []


def test_a_view_whose_file_has_changed_is_replaced(scene: ViewsFixture) -> None:
    scene.run_service(EVENTS)
    scene.write(SESSIONS, "SELECT a FROM silver.events WHERE a > 0")

    assert scene.run_service(EVENTS) == [f"make {SESSIONS}"]
    assert "where a > 0" in scene.trino.views[SESSIONS]


def test_a_view_that_was_changed_in_trino_is_replaced(scene: ViewsFixture) -> None:
    scene.run_service(EVENTS)
    scene.trino.views[SESSIONS] = "select 1 as a"

    assert scene.run_service(EVENTS) == [f"make {SESSIONS}"]


def test_a_view_whose_file_was_deleted_is_dropped(scene: ViewsFixture) -> None:
    scene.run_service(EVENTS)
    scene.file(SESSIONS).unlink()

    assert scene.run_service(EVENTS) == [f"drop {SESSIONS}"]
    assert scene.trino.views == {}


def test_a_view_of_another_owner_or_a_changed_one_is_not_dropped(scene: ViewsFixture) -> None:
    scene.run_service(EVENTS)
    scene.trino.views |= {SESSIONS: "select 1 as a", "silver.mine": "select 1"}
    scene.file(SESSIONS).unlink()

    assert scene.run_service(EVENTS) == []


def test_a_refused_view_does_not_affect_others(scene: ViewsFixture) -> None:
    scene.trino.refused = {SESSIONS}

    errors = scene.keeper.synchronize(frozenset({EVENTS, CHESS}))

    assert [str(error) for error in errors] == [f"Trino refuses the view {SESSIONS}"]
    assert PLAYERS in scene.trino.views


def test_a_malformed_file_leaves_the_views_unchanged(scene: ViewsFixture) -> None:
    scene.run_service(EVENTS)
    scene.file(SESSIONS).write_text("SELECT 1")

    assert scene.run_service(EVENTS) == []
    [error] = scene.keeper.synchronize(frozenset({EVENTS}))
    assert "sessions.sql" in str(error)
    assert SESSIONS in scene.trino.views


def test_what_failed_while_trino_was_unavailable_is_done_in_the_next_run(scene: ViewsFixture) -> None:
    scene.trino.is_silent = True
    with pytest.raises(TrinoUnavailableError):
        scene.keeper.synchronize(frozenset({EVENTS}))
    scene.trino.is_silent = False

    scene.keeper.synchronize(frozenset({EVENTS}))

    assert SESSIONS in scene.trino.views


def test_the_access_rules_let_the_service_own_the_views_of_the_files_and_nothing_else() -> None:
    rules = json.loads((ROOT / "compose/trino/etc/rules.json").read_text())["tables"]
    owning = [rule for rule in rules if rule.get("user") == "views" and "OWNERSHIP" in rule["privileges"]]
    names = {view.name for view in load_views(ROOT / "sql/views", ROOT / "contracts/games.yaml")}

    assert {f"{rule['schema']}.{name}" for rule in owning for name in rule["table"].split("|")} == names
    assert all(re.fullmatch(r"[a-z_|]+", rule["table"]) for rule in owning)
