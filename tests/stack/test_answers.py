"""What the stack makes of events: gold tables that follow silver, read in Trino by an analyst, through a kill."""

import uuid

import pytest
from deltalake import DeltaTable

from tests.stack.game import Game, an_event
from tests.stack.platform import Stack
from tests.stack.trino_users import ANALYST, SUPPORT
from tests.support.eventually import eventually

GAME = "merge_garden"
TITLE = "Merge Garden"
PLAYERS = f"gold/{GAME}_player_agg"


@pytest.fixture
def game(stack: Stack) -> Game:
    """A game of the contract, on a stack with its serving process."""
    stack.await_health("ingest")
    stack.await_health("serving")
    return Game.of(GAME)


def pseudonym(stack: Stack, event: dict[str, object]) -> str:
    """What a player is called in the lakehouse, once the event is there."""
    wanted = [("event_id", "=", event["event_id"])]

    def rows() -> list[str]:
        location = stack.lakehouse
        place, options = location.child(f"silver/{GAME}_events"), dict(location.options)
        if not DeltaTable.is_deltatable(place, options):
            return []
        table = DeltaTable(place, storage_options=options)
        found: list[str] = table.to_pyarrow_table(columns=["gamer_id"], filters=wanted)["gamer_id"].to_pylist()
        return found

    eventually(lambda: bool(rows()), timeout=120)
    return rows()[0]


def is_known(table: str) -> bool:
    """Return True if Trino has the table."""
    schema, name = table.split("/")
    names = f"SELECT 1 AS one FROM information_schema.tables WHERE table_schema = '{schema}' AND table_name = '{name}'"  # noqa: S608 # our names
    return bool(ANALYST.ask(names))


@pytest.mark.slow
def test_gold_has_each_players_events_once_though_its_job_is_killed_in_between(stack: Stack, game: Game) -> None:
    player = f"gamer-{uuid.uuid4().hex}"
    first = an_event(gamer_id=player, event_name="session_start")
    game.post([first, an_event(gamer_id=player)])
    name = pseudonym(stack, first)
    counted = f"SELECT session_count, event_count FROM {PLAYERS.replace('/', '.')} WHERE gamer_id = '{name}'"  # noqa: S608 # a pseudonym
    eventually(lambda: is_known(PLAYERS), timeout=180)
    eventually(lambda: SUPPORT.records(counted) == [{"session_count": 1, "event_count": 2}], timeout=180)

    stack.crash("serving")
    game.post([an_event(gamer_id=player, event_name="session_start") for _ in range(3)])

    stack.await_health("serving")
    eventually(lambda: SUPPORT.records(counted) == [{"session_count": 4, "event_count": 5}], timeout=180)


@pytest.mark.slow
@pytest.mark.parametrize("figures", ["kpi_hourly", "kpi_daily"])
def test_the_key_figures_count_each_event_once_though_their_job_is_killed_in_between(
    stack: Stack, game: Game, figures: str
) -> None:
    counted = f"SELECT sum(events) AS events FROM gold.{figures} WHERE game_name = '{TITLE}'"  # noqa: S608 # our names
    there = f"SELECT count(*) AS events FROM silver.game_events WHERE game_name = '{TITLE}'"  # noqa: S608 # our names
    game.post([an_event() for _ in range(3)])
    eventually(lambda: is_known(f"gold/{figures}"), timeout=180)

    stack.crash("serving")
    game.post([an_event() for _ in range(4)])

    stack.await_health("serving")
    eventually(lambda: ANALYST.ask(counted) == ANALYST.ask(there), timeout=180)
