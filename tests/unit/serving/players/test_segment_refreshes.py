"""Refreshes of segments while KPIs fail, players get other numbers, or Kafka is unreachable."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

import pytest
from deltalake import DeltaTable

from gamelake.model.errors import KafkaUnavailableError
from gamelake.model.failpoints import Failpoints
from gamelake.model.naming import SILVER_EVENTS
from gamelake.serving.kpis.figures import GameChange, GameKpis
from gamelake.serving.players import player_states
from tests.support.silver_events import BEGINNING, Event, Silver
from tests.unit.serving.players.player_lake import SEGMENTS, PlayerLake

DAY = timedelta(days=1)
NEWCOMERS = tuple(each for each in SEGMENTS if each.name == "newcomers")


class EndedError(Exception):
    """The job ended here."""


@pytest.fixture
def lake(tmp_path: Path) -> PlayerLake:
    return PlayerLake(Silver(tmp_path), today=(BEGINNING + DAY).date(), segments=NEWCOMERS)


@contextmanager
def broken_kpis(game: str) -> Iterator[None]:
    """The KPIs of a game can't be computed."""
    compute = GameKpis.compute

    def broken(kpis: GameKpis, *arguments: object) -> GameChange:
        if kpis.game == game:
            raise ValueError("broken")
        return compute(kpis, *arguments)  # type: ignore[arg-type] # whatever it was called with

    with patch.object(GameKpis, "compute", broken):
        yield


def number_players_again(lake: PlayerLake) -> None:
    """Another process changes the table of players, so that the KPIs are computed with new numbers."""
    DeltaTable(lake.silver.folder / "gold/kpi_players").delete("game_name = 'Archery'")


def test_players_with_new_numbers_are_published_once_if_there_are_no_segments(lake: PlayerLake) -> None:
    lake.silver.append([Event(at=BEGINNING, gamer=gamer) for gamer in ("ann", "bob")])
    lake.run_segments()
    lake.job.use((), ())
    lake.run_segments()
    number_players_again(lake)
    lake.run_segments()
    sent = len(lake.topic.sent)

    lake.run_segments()

    assert len(lake.topic.sent) == sent


def test_a_game_without_kpis_has_no_members_by_former_numbers_and_catches_up(lake: PlayerLake) -> None:
    lake.silver.append([Event(at=BEGINNING, game=game, gamer=f"ann of {game}") for game in ("Archery", "Bingo's")])
    lake.run_segments()
    assert lake.members() == {
        ("Archery", "newcomers"): {"ann of Archery"}, ("Bingo's", "newcomers"): {"ann of Bingo's"},
    }  # fmt: skip

    number_players_again(lake)
    with broken_kpis("Bingo's"):
        assert lake.run().failed == ("Bingo's",)
        assert lake.job().failed == {"Bingo's": "its KPIs have failed"}
    assert lake.members() == {("Archery", "newcomers"): {"ann of Archery"}}

    lake.today += 2 * DAY
    assert lake.run_segments().failed == {}
    lake.check()
    assert lake.topic.values[("Bingo's", "ann of Bingo's")] == []


def test_players_of_a_game_that_lost_all_events_while_the_job_was_down_are_forgotten(lake: PlayerLake) -> None:
    lake.silver.append([Event(at=BEGINNING, game=game) for game in ("Archery", "Bingo's")])
    lake.run_segments()

    DeltaTable(lake.silver.folder / SILVER_EVENTS).delete("game_name = 'Archery'")
    lake.begin_again()
    lake.run_segments()

    assert lake.topic.values == {("Bingo's", "anna"): ["newcomers"]}
    lake.check()


def test_players_of_a_game_that_lost_all_events_before_a_commit_are_forgotten(lake: PlayerLake) -> None:
    lake.silver.append([Event(at=BEGINNING, game=game) for game in ("Archery", "Bingo's")])
    lake.run()
    with patch.object(Failpoints, "reach", side_effect=EndedError), pytest.raises(EndedError):
        lake.job()

    DeltaTable(lake.silver.folder / SILVER_EVENTS).delete("game_name = 'Archery'")
    lake.begin_again()
    lake.run_segments()

    assert lake.topic.values == {("Bingo's", "anna"): ["newcomers"]}
    lake.check()


def test_a_day_begins_while_a_game_waits_to_be_computed_again(lake: PlayerLake) -> None:
    lake.silver.append([Event(at=BEGINNING, gamer="ann")])
    lake.run_segments()
    lake.job.states.rebuild_seconds = 3_600
    lake.silver.append([Event(at=BEGINNING, game="Bingo's", gamer=gamer) for gamer in ("ann", "bob", "cid")])
    with broken_kpis("Bingo's"):
        lake.run()
        assert lake.job().failed == {"Bingo's": "its KPIs have failed"}

    lake.today += DAY

    assert lake.run_segments().failed == {"Bingo's": "its KPIs have failed"}
    assert lake.members()[("Archery", "newcomers")] == set()


def test_names_that_wait_for_kafka_take_bounded_memory(lake: PlayerLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(player_states, "_MOST_NAMES", 3)
    lake.silver.append([Event(at=BEGINNING, gamer="zoe")])
    lake.run_segments()
    with patch.object(lake.topic, "publish", side_effect=KafkaUnavailableError("Kafka is down")):
        for gamer in ("ann", "bob", "cid", "dora", "eve"):
            lake.silver.append([Event(at=BEGINNING, gamer=gamer)])
            with pytest.raises(KafkaUnavailableError):
                lake.run_segments()

    assert sum(map(len, lake.job.states.pending["Archery"].names)) <= 3
    lake.run_segments()
    lake.check()
