"""The MCP server as a process, asked by the official client, before a server that speaks Trino's protocol."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest

from tests.embedded.fake_trino import FakeAnswer, FakeTrino, fake_trino
from tests.support.agent_client import AgentClient, ToolCall

PLAYERS = FakeAnswer((("platform", "varchar"), ("players", "bigint")), (("android", 3), ("ios", 4)))
# Longer than two requests of one client are apart.
_ALONE_SECONDS = 1.0
SECRET = "0123456789abcdef0123456789abcdef"  # noqa: S105 # a pseudonym


@pytest.fixture
def trino() -> Iterator[FakeTrino]:
    with fake_trino(lambda _: PLAYERS) as server:
        yield server


@pytest.fixture
def agent(trino: FakeTrino, tmp_path: Path) -> AgentClient:
    return AgentClient(
        {
            "GAMELAKE_TRINO_URL": trino.url,
            "GAMELAKE_TRINO_USER": "analyst-archery-duel",
            "GAMELAKE_LOG_FORMAT": "json",
            "GAMELAKE_AGENTS_ROWS": "2",
            "GAMELAKE_AGENTS_ANSWER_BYTES": "1000",
        },
        tmp_path / "log",
    )


def audit(agent: AgentClient) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in agent.log.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line["event"] == "agent_called"]


def test_the_command_line_serves_the_tools(agent: AgentClient) -> None:
    command = AgentClient(agent.settings, agent.log, (sys.executable, "-m", "gamelake", "mcp"))

    assert command.tools() == ["list_metrics", "describe_metric", "query_metric", "run_sql", "explain_freshness"]


def test_a_metric_is_asked_as_the_user_within_the_limits(agent: AgentClient, trino: FakeTrino) -> None:
    arguments = {"metric": "players", "dimensions": ["platform"], "since": "2026-11-01", "until": "2026-11-02"}

    [reply] = agent.call(ToolCall("query_metric", {**arguments, "game": "archery_duel"}))

    assert (reply.is_error, reply.values["rows"]) == (False, [["android", 3], ["ios", 4]])
    [asked] = trino.asked
    assert "event_date BETWEEN DATE '2026-11-01' AND DATE '2026-11-02' AND game_name IN ('Archery Duel')" in asked.sql
    assert asked.headers["X-Trino-User"] == "analyst-archery-duel"
    assert asked.headers["X-Trino-Source"] == "gamelake-agents/query_metric"
    assert set(asked.headers["X-Trino-Session"].split(",")) == {
        "query_max_run_time=30s",
        "query_max_cpu_time=60s",
        "query_max_scan_physical_bytes=1024MB",
    }


def test_an_answer_is_cut_at_its_rows_and_at_its_bytes(agent: AgentClient, trino: FakeTrino) -> None:
    many = FakeAnswer((("number", "bigint"),), tuple((number,) for number in range(3)))
    wide = FakeAnswer((("text", "varchar"),), (("x" * 600,), ("y" * 600,)))
    trino.answer = lambda sql: many if "number" in sql else wide

    rows, text = agent.call(ToolCall.sql("SELECT number FROM gold.some"), ToolCall.sql("SELECT text FROM gold.some"))

    assert (rows.values["rows"], rows.values["is_cut"]) == ([[0], [1]], True)
    assert (text.values["rows"], text.values["is_cut"]) == ([["x" * 600]], True)
    assert [(line["outcome"], line["rows"]) for line in audit(agent)] == [("cut", 2), ("cut", 1)]


def test_a_statement_that_writes_does_not_reach_trino(agent: AgentClient, trino: FakeTrino) -> None:
    [reply] = agent.call(ToolCall.sql("DELETE FROM silver.events WHERE gamer_id = 'Anna Meier'"))

    assert reply.is_error
    assert "run_sql takes one SELECT, SHOW, DESCRIBE or EXPLAIN" in reply.text
    assert trino.asked == []
    [line] = audit(agent)
    assert (line["user"], line["tool"], line["outcome"]) == ("analyst-archery-duel", "run_sql", "refused")
    assert line["statements"] == ["DELETE FROM silver.events WHERE gamer_id = '***'"]


def test_an_error_that_can_show_a_value_is_named_without_its_message(agent: AgentClient, trino: FakeTrino) -> None:
    cast = FakeAnswer(error=("INVALID_CAST_ARGUMENT", f"Cannot cast '{SECRET}' to INT"))
    missing = FakeAnswer(error=("COLUMN_NOT_FOUND", "Column 'gamer' cannot be resolved"))
    trino.answer = lambda sql: cast if "CAST" in sql else missing

    hidden, shown = agent.call(
        ToolCall.sql("SELECT CAST(gamer_id AS integer) FROM silver.events"),
        ToolCall.sql("SELECT gamer FROM silver.events"),
    )

    assert (hidden.is_error, SECRET in hidden.text) == (True, False)
    assert "INVALID_CAST_ARGUMENT" in hidden.text
    assert "Column 'gamer' cannot be resolved" in shown.text
    assert [(line["outcome"], line["error"]) for line in audit(agent)] == [
        ("failed", "INVALID_CAST_ARGUMENT"),
        ("failed", "COLUMN_NOT_FOUND"),
    ]
    assert SECRET not in agent.log.read_text(encoding="utf-8")


def test_a_plan_does_not_count_the_rows_of_all_games(agent: AgentClient, trino: FakeTrino) -> None:
    plan = "Fragment 0\n   Estimates: {rows: 4711 (1MB)}\n   TableScan[table = silver.events]"
    trino.answer = lambda _: FakeAnswer((("Query Plan", "varchar"),), ((plan,),))

    [reply] = agent.call(ToolCall.sql("EXPLAIN SELECT count(*) FROM silver.events"))

    assert "TableScan" in reply.text
    assert "4711" not in reply.text


def test_freshness_of_a_view_is_asked_without_the_times_of_files(agent: AgentClient, trino: FakeTrino) -> None:
    described = FakeAnswer((("event_date", "date"), ("event_time", "varchar")))
    figures = FakeAnswer((("row_count", "bigint"), ("newest_event", "varchar")), ((7, "2026-11-30 12:00:00 UTC"),))

    def answer(sql: str) -> FakeAnswer:
        if "gold.validations" in sql:
            return FakeAnswer(error=("PERMISSION_DENIED", "Access Denied: Cannot select from table gold.validations"))
        if "$file_modified_time" in sql:
            return FakeAnswer(error=("COLUMN_NOT_FOUND", "Column '$file_modified_time' cannot be resolved"))
        return described if sql.endswith("LIMIT 0") else figures

    trino.answer = answer

    [reply] = agent.call(ToolCall("explain_freshness", {"table": "silver.game_events"}))

    assert reply.values["figures"] == {"row_count": 7, "newest_event": "2026-11-30 12:00:00 UTC"}
    assert reply.values["validations"].startswith("not visible to this user")
    assert "event_date >= current_date - INTERVAL '7' DAY" in trino.asked[2].sql


def test_each_call_has_one_line_in_the_audit_also_one_with_wrong_arguments(agent: AgentClient) -> None:
    replies = agent.call(
        ToolCall("list_metrics", {}),
        ToolCall("describe_metric", {"metric": "conversion"}),
        ToolCall("describe_metric", {"metric": "luck"}),
        ToolCall("query_metric", {"metric": ["players"]}),
        ToolCall("query_metric", {"metric": "players", "since": "yesterday"}),
        ToolCall("drop_table", {}),
        ToolCall("explain_freshness", {"table": "silver.events; DROP TABLE silver.events"}),
    )

    assert [reply.is_error for reply in replies] == [False, False, True, True, True, True, True]
    assert "there is no metric 'luck'; there are events, players" in replies[2].text
    assert [(line["tool"], line["outcome"]) for line in audit(agent)] == [
        ("list_metrics", "answered"),
        ("describe_metric", "answered"),
        ("describe_metric", "refused"),
        ("query_metric", "refused"),
        ("query_metric", "refused"),
        ("drop_table", "refused"),
        ("explain_freshness", "refused"),
    ]


def test_an_agent_has_one_query_in_trino_at_a_time(agent: AgentClient, trino: FakeTrino) -> None:
    both = Barrier(2)
    met: list[bool] = []

    def answer(_: str) -> FakeAnswer:
        try:
            both.wait(_ALONE_SECONDS)
            met.append(True)
        except BrokenBarrierError:
            met.append(False)
        return PLAYERS

    trino.answer = answer

    replies = agent.call_together(ToolCall.sql("SELECT 1 AS a"), ToolCall.sql("SELECT 2 AS b"))

    assert [reply.is_error for reply in replies] == [False, False]
    assert met == [False, False]


def test_while_trino_is_away_the_agent_reads_what_to_do(agent: AgentClient) -> None:
    away = AgentClient({**agent.settings, "GAMELAKE_TRINO_URL": "http://127.0.0.1:9"}, agent.log)

    [reply] = away.call(ToolCall.sql("SELECT 1"))

    assert reply.is_error
    assert "Trino does not respond (TrinoConnectionError); on this machine, make up starts it" in reply.text
