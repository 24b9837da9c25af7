"""The KPIs of a demo's run, from rows that it added to silver."""

from pathlib import Path

from gamelake.ledger.manifests import BatchManifest
from tests.support.manifests import a_manifest
from tests.support.silver_events import BEGINNING, Event, Silver
from tools.demo.key_figures import GameKeyFigures, key_figures


def manifest_of(silver: Silver, *events: Event) -> BatchManifest:
    """A batch that added these events."""
    return a_manifest(stream="s", tables=(silver.append(events),))


def test_players_sessions_payers_and_bookings_are_counted_by_game(tmp_path: Path) -> None:
    events = (
        Event(at=BEGINNING, gamer="a", session="1"),
        Event(at=BEGINNING, gamer="a", session="1", name="purchase", amount=4.99),
        Event(at=BEGINNING, gamer="b", session="2"),
        Event(at=BEGINNING, game="Bingo", gamer="c", session="3"),
    )
    silver = Silver(tmp_path)

    figures = key_figures(silver.location, [manifest_of(silver, *events)])

    assert figures.games == (
        GameKeyFigures(game="Archery", events=3, players=2, sessions=2, payers=1, bookings=4.99),
        GameKeyFigures(game="Bingo", events=1, players=1, sessions=1, payers=0, bookings=0.0),
    )
    assert figures.games[0].conversion == 0.5
    assert figures.games[1].bookings_per_player == 0


def test_rows_of_other_runs_are_not_counted(tmp_path: Path) -> None:
    silver = Silver(tmp_path)
    manifest_of(silver, Event(at=BEGINNING, game="Earlier"))

    figures = key_figures(silver.location, [manifest_of(silver, Event(at=BEGINNING, game="Now"))])

    assert [game.game for game in figures.games] == ["Now"]


def test_a_run_without_rows_has_no_figures(tmp_path: Path) -> None:
    assert key_figures(Silver(tmp_path).location, []).games == ()
