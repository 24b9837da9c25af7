"""The segments contract: each mistake is named with file and line, and stops no other segment."""

from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from gamelake.contract.games import load_games
from gamelake.model.errors import ContractError
from gamelake.observability.metrics.serving.segments import SegmentTelemetry
from gamelake.serving.players.contract import load_segments, usable_segments
from gamelake.serving.players.keeper import SegmentKeeper
from gamelake.serving.players.refresh import SegmentsRefreshed
from tests.support.silver_events import BEGINNING, Event, Silver
from tests.unit.serving.players.player_lake import PlayerLake

GAMES = load_games(Path("contracts/games.yaml"))
_TWO = """\
segments:
  - name: first
    description: a test
    where: {where}
  - {{ name: second, description: a test, where: events > 0 }}
"""


class Observed:
    """Counts refreshes that are complete, and others."""

    def __init__(self) -> None:
        self.complete = self.incomplete = 0

    def refreshed(self, result: SegmentsRefreshed, *, is_complete: bool) -> None:
        del result
        self.complete += is_complete
        self.incomplete += not is_complete

    def failed(self) -> None:
        self.incomplete += 1


@pytest.mark.parametrize(
    ("where", "problem"),
    [
        ("events IN (SELECT 1)", "queries another table"),
        ("visits > 1", "uses 'visits', which is not a column of a player"),
        ("random() > events", r"calls random\(\)"),
        ("current_date > country", "uses 'current_date'"),
        ("sum(events) > 1", r"calls sum\(\)"),
        ("events > 1; DROP TABLE player", "is not a SQL expression"),
        ("country", "is a VARCHAR, not a condition"),
        ("1 = 1", "names no column"),
        ("country > 1 AND lower(events, 2)", "can't be computed"),
    ],
)
def test_only_a_condition_over_the_columns_of_a_player_is_accepted(where: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "segments.yaml"
    file.write_text(_TWO.format(where=f'"{where}"'))

    with pytest.raises(ContractError, match=rf"segments.yaml:4: the condition of 'first' .*{problem}"):
        load_segments(file, GAMES)
    usable = usable_segments(file, GAMES)
    assert [each.name for each in usable.segments] == ["second"]
    assert usable.problems.keys() == {"first"}


def test_a_name_that_is_listed_twice_and_an_unknown_game_are_named(tmp_path: Path) -> None:
    file = tmp_path / "segments.yaml"
    file.write_text(_TWO.format(where="events > 1").replace("second", "first"))
    with pytest.raises(ContractError, match=r"segments\.yaml:5: 'first' is listed twice"):
        load_segments(file, GAMES)

    file.write_text(_TWO.format(where="events > 1\n    game: no_game"))
    with pytest.raises(ContractError, match=r"segments\.yaml:5: games.yaml does not have the game 'no_game'"):
        load_segments(file, GAMES)


def test_a_wrong_segment_keeps_its_members_and_others_are_computed_until_it_is_corrected(tmp_path: Path) -> None:
    lake = PlayerLake(Silver(tmp_path / "lake"), today=(BEGINNING + timedelta(days=1)).date())
    (tmp_path / "games.yaml").write_bytes(Path("contracts/games.yaml").read_bytes())
    file, observed = tmp_path / "segments.yaml", Observed()
    keeper = SegmentKeeper(lake.job, tmp_path / "games.yaml", observed)
    file.write_text(_TWO.format(where="events > 1"))
    lake.take([Event(at=BEGINNING, gamer="ann"), Event(at=BEGINNING, gamer="ann"), Event(at=BEGINNING, gamer="bob")])
    assert keeper() == []
    assert lake.members() == {("Archery", "first"): {"ann"}, ("Archery", "second"): {"ann", "bob"}}

    file.write_text(_TWO.format(where="visits > 1"))
    lake.take([Event(at=BEGINNING, gamer="bob"), Event(at=BEGINNING, gamer="cid")])
    [failed] = keeper()
    assert "segments.yaml:4: the condition of 'first' uses 'visits'" in failed.reason
    assert lake.members() == {("Archery", "first"): {"ann"}, ("Archery", "second"): {"ann", "bob", "cid"}}

    file.write_text("nonsense: 1")
    lake.take([Event(at=BEGINNING, gamer="dora")])
    assert "unknown key 'nonsense'" in keeper()[0].reason
    assert lake.members()[("Archery", "second")] == {"ann", "bob", "cid", "dora"}

    file.write_text(_TWO.format(where="events > 1"))
    assert keeper() == []
    assert lake.members()[("Archery", "first")] == {"ann", "bob"}
    assert (observed.complete, observed.incomplete) == (2, 2)


def test_a_value_that_a_condition_cannot_compute_stops_no_other_segment(tmp_path: Path) -> None:
    lake = PlayerLake(Silver(tmp_path / "lake"), today=(BEGINNING + timedelta(days=1)).date())
    (tmp_path / "games.yaml").write_bytes(Path("contracts/games.yaml").read_bytes())
    (tmp_path / "segments.yaml").write_text(_TWO.format(where="CAST(country AS INTEGER) > 1"))
    keeper = SegmentKeeper(lake.job, tmp_path / "games.yaml", Observed())
    lake.take([Event(at=BEGINNING, gamer="ann", country="FR")])

    [failed] = keeper()

    assert failed.reason.startswith("first: ConversionException")
    assert lake.members() == {("Archery", "second"): {"ann"}}


def test_players_who_move_are_counted_although_another_segment_fails(tmp_path: Path) -> None:
    lake, registry = PlayerLake(Silver(tmp_path / "lake"), today=BEGINNING.date()), CollectorRegistry()
    (tmp_path / "games.yaml").write_bytes(Path("contracts/games.yaml").read_bytes())
    (tmp_path / "segments.yaml").write_text(_TWO.format(where="visits > 1"))
    keeper = SegmentKeeper(lake.job, tmp_path / "games.yaml", SegmentTelemetry(registry))
    lake.take([Event(at=BEGINNING, gamer="ann")])

    assert len(keeper()) == 1

    assert registry.get_sample_value("gamelake_segments_moves_total") == 1
    assert registry.get_sample_value("gamelake_segments_seconds_behind") != 0
