"""An agent has the rights of its user: hostile queries through the official client show no row that the user lacks."""

import os
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from tests.embedded.effort import hostile_queries
from tests.stack.platform import Stack, stack_sender
from tests.stack.trino_users import ADMIN, COMMITTED_SECONDS, ENGINEER, SUPPORT, await_answer, fill
from tests.support.agent_client import AgentClient, ToolCall
from tests.support.hostile_queries import OTHER, OWN, Canaries, HostileCall, hostile_calls, problem

USER = "analyst-archery-duel"
TABLES = ("silver.events", "gold.all_players", "gold.all_player_days", "gold.all_sessions")
_MOST = 20_000
_SEED = 20_261_130
# Ten thousand of them take more than an hour on two cores.
_SECONDS_PER_QUERY = 3


@pytest.fixture(autouse=True, scope="module")
def filled(stack: Stack) -> None:
    """Tables of all games have rows of both games, and Trino shows them."""
    assert stack.is_healthy("trino")
    fill(["silver.archery_duel_events", "gold.archery_duel_player_agg"])
    fill(["silver.kart_rumble_events", "gold.kart_rumble_player_agg"], OTHER)
    for table in TABLES:
        for title in (OWN, OTHER):
            row = f"SELECT 1 FROM {table} WHERE game_name = '{title}' LIMIT 1"  # noqa: S608 # names of our own
            await_answer(ENGINEER, row, timeout=COMMITTED_SECONDS)
    for title in (OWN, OTHER):
        player = uuid4().hex
        stack_sender().send_events(1, title, gamer_id=player)
        row = f"SELECT 1 FROM silver.events WHERE gamer_id = '{player}'"  # noqa: S608 # our own
        await_answer(ENGINEER, row, timeout=COMMITTED_SECONDS)


@pytest.fixture(scope="module")
def canaries() -> Canaries:
    """All pseudonyms, and of other games the ids of events and the masked pseudonyms."""
    foreign = f"game_name <> '{OWN}'"
    asked = (
        f"SELECT DISTINCT gamer_id FROM silver.events WHERE gamer_id IS NOT NULL LIMIT {_MOST}",  # noqa: S608 # a number
        f"SELECT event_id FROM silver.events WHERE {foreign} ORDER BY event_time DESC LIMIT {_MOST}",  # noqa: S608 # as above
        "SELECT DISTINCT lower(to_hex(xxhash64(to_utf8(gamer_id)))) FROM silver.events "  # noqa: S608 # as above
        # Other tests send events of one player to both games.
        f"WHERE {foreign} AND gamer_id NOT IN (SELECT gamer_id FROM silver.events "
        f"WHERE game_name = '{OWN}' AND gamer_id IS NOT NULL) LIMIT {_MOST}",
    )
    values = {str(row[0]).lower() for sql in asked for row in SUPPORT.ask(sql)}
    # A short id can be a part of anything.
    return Canaries(frozenset(value for value in values if len(value) >= 16))


def agent(user: str, folder: Path) -> AgentClient:
    """The server as an agent's client starts it."""
    settings = {name: value for name, value in os.environ.items() if not name.startswith("GAMELAKE_TRINO_")}
    return AgentClient(settings, folder / "agent.log", (sys.executable, "-m", "gamelake", "mcp", "--user", user))


@pytest.mark.timeout(600 + _SECONDS_PER_QUERY * hostile_queries())
def test_hostile_queries_of_an_agent_show_no_row_of_another_game_and_no_pseudonym(
    canaries: Canaries, tmp_path: Path
) -> None:
    calls = hostile_calls(hostile_queries(), _SEED)

    replies = agent(USER, tmp_path).call(*(call.call for call in calls))

    pairs = list(zip(calls, replies, strict=True))
    problems = {call.text: found for call, reply in pairs if (found := problem(call, reply, canaries))}
    assert problems == {}
    # They are not harmless because Trino could read none of them.
    answered = {call.family for call, reply in pairs if not reply.is_error}
    assert answered >= {"rows", "aggregate", "union", "count", "oracle", "listing", "metric", "plan"}


def test_the_same_queries_of_a_user_who_may_read_it_all_are_found(canaries: Canaries, tmp_path: Path) -> None:
    shown = HostileCall("rows", ToolCall.sql("SELECT reverse(gamer_id) AS v FROM silver.events LIMIT 5"))
    calls = [shown, *(call for call in hostile_calls(200, _SEED) if call.family in {"count", "oracle"})]

    replies = agent("engineer", tmp_path).call(*(call.call for call in calls))

    found = [problem(call, reply, canaries) for call, reply in zip(calls, replies, strict=True)]
    assert "shows" in found[0]
    assert any("counts others' rows" in text for text in found)
    assert any("computes with others' rows" in text for text in found)


def test_errors_show_no_value_though_trino_has_it(tmp_path: Path) -> None:
    """The reader of the message would learn the masked pseudonym that the filters leave; of others there is none."""
    cast = ToolCall.sql("SELECT CAST(gamer_id AS bigint) FROM silver.events WHERE gamer_id IS NOT NULL")

    [reply] = agent(USER, tmp_path).call(cast)

    assert reply.is_error
    assert "INVALID_CAST_ARGUMENT" in reply.text
    assert "Cannot cast" not in reply.text


def test_a_query_ends_at_the_limits_of_its_agent(tmp_path: Path) -> None:
    endless = ToolCall.sql("SELECT count(*) FROM TABLE(sequence(0, 1000000000000))")
    client = agent(USER, tmp_path)
    limited = AgentClient({**client.settings, "GAMELAKE_AGENTS_SECONDS": "2"}, client.log, client.command)

    [reply] = limited.call(endless)

    assert reply.is_error
    assert "EXCEEDED_TIME_LIMIT" in reply.text


def test_the_audit_shows_the_calls_of_agents(tmp_path: Path) -> None:
    client = agent(USER, tmp_path)

    [reply] = client.call(ToolCall("query_metric", {"metric": "players", "dimensions": ["game_name"]}))

    assert {row[0] for row in reply.values["rows"]} <= {OWN}
    query = f"SELECT user_name, source FROM audit.queries WHERE query_id = '{reply.values['query_id']}'"  # noqa: S608 # an id
    await_answer(ADMIN, query, timeout=60)
    assert ADMIN.ask(query)[0] == [USER, "gamelake-agents/query_metric"]
    assert "agent_called" in client.log.read_text(encoding="utf-8")


def test_each_tool_answers_its_user(tmp_path: Path) -> None:
    replies = agent(USER, tmp_path).call(
        ToolCall("list_metrics", {}),
        ToolCall("describe_metric", {"metric": "median_purchase"}),
        ToolCall("query_metric", {"metric": "median_purchase", "dimensions": ["platform", "is_late"]}),
        ToolCall.sql("SHOW TABLES FROM silver"),
        ToolCall("explain_freshness", {"table": "silver.events"}),
        ToolCall("explain_freshness", {"table": "gold.players"}),
        ToolCall("explain_freshness", {"table": "gold.kpi_daily"}),
    )

    assert [reply.text for reply in replies if reply.is_error] == []
    assert replies[4].values["figures"]["row_count"] > 0
    assert replies[4].values["figures"]["last_written_at"]
    assert "last_written_at" not in replies[5].values["figures"]
