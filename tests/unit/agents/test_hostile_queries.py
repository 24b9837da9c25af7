"""The generated attacks on an agent's rights: they differ, most reach Trino, and a leak in their replies is found."""

import base64
from collections import Counter

import pytest

from gamelake.model.errors import QuestionError
from services.agents.statements import read_statement
from tests.support.agent_client import ToolCall, ToolReply
from tests.support.hostile_queries import Canaries, HostileCall, Promise, hostile_calls, problem

CALLS = hostile_calls(3_000, seed=1)
PSEUDONYM = "0123456789abcdef0123456789abcdef"
CANARIES = Canaries(frozenset({PSEUDONYM}))


def is_refused(call: HostileCall) -> bool:
    try:
        read_statement(str(call.call.arguments["sql"]))
    except QuestionError:
        return True
    return False


def test_a_seed_makes_the_same_calls() -> None:
    assert hostile_calls(50, seed=1) == CALLS[:50] != hostile_calls(50, seed=2)


def test_calls_differ_and_each_family_has_many() -> None:
    families = Counter(call.family for call in CALLS)

    assert len({repr(call.call) for call in CALLS}) > 0.85 * len(CALLS)
    assert len(families) == 12
    assert min(families.values()) > 100


def test_the_check_before_trino_refuses_what_it_is_for_and_leaves_the_rest_to_trino() -> None:
    asked = [call for call in CALLS if call.call.tool == "run_sql"]

    refused = Counter(call.family for call in asked if is_refused(call))

    assert refused == {"refused": sum(call.family == "refused" for call in asked)}


@pytest.mark.parametrize(
    "text",
    [
        PSEUDONYM,
        f"x{PSEUDONYM}y",
        PSEUDONYM.upper(),
        PSEUDONYM[::-1],
        PSEUDONYM.encode().hex().upper(),
        base64.b64encode(PSEUDONYM.encode()).decode(),
        f'[["{PSEUDONYM}"]]',
    ],
)
def test_a_pseudonym_in_a_reply_is_found_in_any_encoding(text: str) -> None:
    call = HostileCall("rows", ToolCall.sql("SELECT 1"))

    assert problem(call, ToolReply(text, is_error=False, values={}), CANARIES) == "shows 1 values of others"
    assert not problem(call, ToolReply("0123456789abcdef", is_error=False, values={}), CANARIES)


def test_a_count_of_others_rows_an_oracle_and_an_accepted_write_are_found() -> None:
    sql = ToolCall.sql("SELECT count(*)")
    one, error = ToolReply("1", is_error=False, values={"rows": [[1]]}), "failed (DIVISION_BY_ZERO)"

    assert "counts" in problem(HostileCall("count", sql, Promise.NOTHING), one, CANARIES)
    assert "computes" in problem(HostileCall("oracle", sql, Promise.SILENT), ToolReply(error, True, {}), CANARIES)
    assert "not refused" in problem(HostileCall("refused", sql, Promise.REFUSED), one, CANARIES)
    assert "names" in problem(HostileCall("rows", sql), ToolReply("Kart Rumble", False, {}), CANARIES)
    nothing = ToolReply("0", is_error=False, values={"rows": [[0, None, False]]})
    assert problem(HostileCall("count", sql, Promise.NOTHING), nothing, CANARIES) == ""
