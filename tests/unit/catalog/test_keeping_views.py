"""Trino's views follow the files and the tables; what somebody else has made stays."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from gamelake.model.naming import Layer
from gamelake.serving.sql.views import View, load_views
from gamelake.storage.store import Location, Store
from services.catalog.errors import TrinoSilentError, ViewRefusedError
from services.catalog.settings import TrinoSettings
from services.catalog.tables import Table
from services.catalog.trino import TrinoViews
from services.catalog.views import ViewFiles, ViewKeeper

ROOT = Path(__file__).parents[3]
SETTINGS = TrinoSettings(host="nowhere", port=1, scheme="http", user="views", catalog="delta")
EVENTS, CHESS, POOL = (
    Table(Layer.SILVER, "events"),
    Table(Layer.GOLD, "chess_player_agg"),
    Table(Layer.GOLD, "pool_player_agg"),
)
SESSIONS, PLAYERS = "silver.sessions", "gold.players"


class RememberingTrino(TrinoViews):
    """Keeps views as Trino does, written in words of its own, and counts what it is asked."""

    def __init__(self) -> None:
        super().__init__(SETTINGS)
        self.views: dict[str, str] = {}
        self.calls: list[str] = []
        self.refused: set[str] = set()
        self.is_silent = False

    def definitions(self) -> Mapping[str, str]:
        """All views."""
        if self.is_silent:
            raise TrinoSilentError("Trino does not answer")
        self.calls.append("definitions")
        return dict(self.views)

    def make(self, view: View, statement: str) -> None:
        """As Trino: the definition is not the text that was given."""
        self.calls.append(f"make {view.name}")
        if view.name in self.refused:
            raise ViewRefusedError(f"Trino refuses the view {view.name}")
        self.views[view.name] = " ".join(statement.split()).lower()

    def drop(self, name: str) -> None:
        """Forget a view."""
        self.calls.append(f"drop {name}")
        del self.views[name]


class Scene:
    """Files of views, a lakehouse, a Trino, and the service between them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "views"
        self.store = Store(Location(uri=(folder / "lakehouse").as_uri()))
        self.trino = RememberingTrino()
        self.now = 0.0
        self.games = folder / "games.yaml"
        self.games.write_text("games: [{name: chess, match: [Chess]}, {name: pool, match: [Pool]}]\n")
        self.write(SESSIONS, "SELECT a FROM silver.events")
        self.write(PLAYERS, "SELECT '{game_name}' AS a FROM gold.{game}_player_agg")
        self.keeper = self.service()

    def service(self) -> ViewKeeper:
        """The service as it starts."""
        return ViewKeeper(ViewFiles(self.folder, self.games), self.trino, self.store, clock=lambda: self.now)

    def write(self, name: str, sql: str) -> None:
        """Write a view's file."""
        each = "-- For each game: all.\n" if "{game}" in sql else ""
        self.file(name).parent.mkdir(parents=True, exist_ok=True)
        self.file(name).write_text(f"-- What it is.\n-- Grain: one row per a.\n{each}-- Column a: what a is\n{sql}\n")

    def file(self, name: str) -> Path:
        """A view's file."""
        return self.folder / (name.replace(".", "/") + ".sql")

    def look(self, *tables: Table) -> list[str]:
        """A round a minute later; gives what Trino was told."""
        self.now += 61
        self.trino.calls.clear()
        self.keeper.bring_in_line(frozenset(tables))
        return [call for call in self.trino.calls if call != "definitions"]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Two views and no tables."""
    return Scene(tmp_path)


def test_a_view_is_made_when_what_it_reads_is_there(scene: Scene) -> None:
    assert scene.look() == []
    assert scene.look(EVENTS) == [f"make {SESSIONS}"]
    assert scene.look(EVENTS, CHESS) == [f"make {PLAYERS}"]
    assert "pool" not in scene.trino.views[PLAYERS]


def test_a_game_comes_into_the_view_of_all_games_with_its_first_table(scene: Scene) -> None:
    scene.look(EVENTS, CHESS)

    assert scene.look(EVENTS, CHESS, POOL) == [f"make {PLAYERS}"]
    assert "gold.pool_player_agg" in scene.trino.views[PLAYERS]


def test_a_service_that_starts_again_finds_nothing_to_do(scene: Scene) -> None:
    scene.look(EVENTS, CHESS)
    scene.keeper = scene.service()

    assert scene.look(EVENTS, CHESS) == []


def test_a_round_in_which_nothing_is_new_asks_trino_nothing(scene: Scene) -> None:
    tables = frozenset({EVENTS})
    scene.keeper.bring_in_line(tables)
    scene.trino.calls.clear()

    scene.keeper.bring_in_line(tables)

    assert scene.trino.calls == []


def test_a_view_whose_file_has_changed_is_replaced(scene: Scene) -> None:
    scene.look(EVENTS)
    scene.write(SESSIONS, "SELECT a FROM silver.events WHERE a > 0")

    assert scene.look(EVENTS) == [f"make {SESSIONS}"]
    assert "where a > 0" in scene.trino.views[SESSIONS]


def test_a_view_that_somebody_has_changed_is_put_right(scene: Scene) -> None:
    scene.look(EVENTS)
    scene.trino.views[SESSIONS] = "select 1 as a"

    assert scene.look(EVENTS) == [f"make {SESSIONS}"]


def test_a_view_whose_file_is_gone_is_dropped(scene: Scene) -> None:
    scene.look(EVENTS)
    scene.file(SESSIONS).unlink()

    assert scene.look(EVENTS) == [f"drop {SESSIONS}"]
    assert scene.trino.views == {}


def test_a_view_that_somebody_else_made_or_changed_is_not_dropped(scene: Scene) -> None:
    scene.look(EVENTS)
    scene.trino.views |= {SESSIONS: "select 1 as a", "silver.mine": "select 1"}
    scene.file(SESSIONS).unlink()

    assert scene.look(EVENTS) == []


def test_a_refused_view_stops_no_other(scene: Scene) -> None:
    scene.trino.refused = {SESSIONS}

    errors = scene.keeper.bring_in_line(frozenset({EVENTS, CHESS}))

    assert [str(error) for error in errors] == [f"Trino refuses the view {SESSIONS}"]
    assert PLAYERS in scene.trino.views


def test_a_file_that_is_malformed_leaves_the_views_as_they_are(scene: Scene) -> None:
    scene.look(EVENTS)
    scene.file(SESSIONS).write_text("SELECT 1")

    assert scene.look(EVENTS) == []
    [error] = scene.keeper.bring_in_line(frozenset({EVENTS}))
    assert "sessions.sql" in str(error)
    assert SESSIONS in scene.trino.views


def test_what_a_silent_trino_was_not_told_it_is_told_in_the_next_round(scene: Scene) -> None:
    scene.trino.is_silent = True
    with pytest.raises(TrinoSilentError):
        scene.keeper.bring_in_line(frozenset({EVENTS}))
    scene.trino.is_silent = False

    scene.keeper.bring_in_line(frozenset({EVENTS}))

    assert SESSIONS in scene.trino.views


def test_the_access_rules_let_the_service_own_the_views_of_the_files_and_nothing_else() -> None:
    rules = json.loads((ROOT / "compose/trino/etc/rules.json").read_text())["tables"]
    owning = [rule for rule in rules if rule.get("user") == "views" and "OWNERSHIP" in rule["privileges"]]
    names = {view.name for view in load_views(ROOT / "sql/views")}

    assert {f"{rule['schema']}.{name}" for rule in owning for name in rule["table"].split("|")} == names
    assert all(re.fullmatch(r"[a-z_|]+", rule["table"]) for rule in owning)
