"""Every question of sql/questions on Trino: against play that is known, and against the pipeline's own tables."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from gamelake.delta.listing import table_names
from gamelake.layers.silver import COMMON_SCHEMA, EVENT_DATE
from gamelake.objects.store import Location, Store
from gamelake.serving.sql.questions import Question, as_of, load_questions
from gamelake.serving.sql.relations import Relations
from gamelake.serving.sql.views import load_views
from tests.answers.answers import ANSWERS, plain
from tests.answers.lakehouse import contract, make_lakehouse
from tests.answers.play import TODAY
from tests.stack.game import Game, an_event
from tests.stack.platform import ROOT, Stack
from tests.stack.trino_users import (
    ENGINEER,
    NewTable,
    User,
    await_answer,
    fill,
    known_by_another_name,
    new_lakehouse,
    new_table,
)  # fmt: skip

QUESTIONS = load_questions(ROOT / "sql/questions")
PORTABLE = {name: each for name, each in QUESTIONS.items() if each.is_portable}
# Nothing about an hour ago is known about a pipeline that may have started a minute ago.
ABOUT_AN_EARLIER_TIME = {"as_it_was_an_hour_ago"}
OWN_TABLES = [
    "silver.events", "silver.kart_rumble_events", "dead_letters.events", "gold.kart_rumble_player_agg",
    "gold.kart_rumble_daily_agg", "gold.sessions", "silver.purchases", "gold.players", "gold.players_per_day",
    "gold.versions_per_day", "gold.player_days", "gold.economy_balances", "gold.version_stability", "gold.load_times",
    "gold.concurrent_players",
]  # fmt: skip

# Today or yesterday, also when the tests run past midnight.
FIRST_EVENT = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=5)
A, B = "Archery Duel", "Bingo Harbor"
SCHEMA = pa.schema([*COMMON_SCHEMA, pa.field(EVENT_DATE, pa.date32())])


def rows_of_events(events: list[tuple[str, int]]) -> pa.Table:
    """Events as (game, minute after the first event)."""
    moments = [(game, FIRST_EVENT + timedelta(minutes=minute)) for game, minute in events]
    rows = [{"event_time": at, "event_name": "x", "game_name": game, EVENT_DATE: at.date()} for game, at in moments]
    return pa.Table.from_pylist(rows, SCHEMA)


# How far a game's events are apart.
SPREAD = {A: timedelta(minutes=80), B: timedelta(minutes=2)}
EARLIER, LATER = [(A, 0), (A, 80), (A, 10), (A, 1)], [(A, 30), (A, 0), (A, 5), (B, 5), (B, 6), (B, 7)]


def asker(question: Question) -> User:
    """The role that may ask a question."""
    return User(question.asked_by)


def asked_of(name: str, table: NewTable) -> list[list[Any]]:
    """The answer that another table gives in the place of silver.events."""
    schema, own_name = table.sql.split(".")
    sql = QUESTIONS[name].sql.replace("silver.events", table.sql)
    return asker(QUESTIONS[name]).ask(sql.replace('silver."events$history"', f'{schema}."{own_name}$history"'))


@pytest.fixture(scope="module")
def known_play(stack: Stack) -> Iterator[tuple[Location, Mapping[str, str]]]:
    """A lakehouse of the known play, and the names by which Trino knows its tables."""
    with new_lakehouse(stack) as place:
        make_lakehouse(place)
        with known_by_another_name(place, table_names(Store(place))) as names:
            yield place, names


@pytest.mark.parametrize("name", PORTABLE)
def test_a_question_has_the_known_answer_on_trino(name: str, known_play: tuple[Location, Mapping[str, str]]) -> None:
    _, names = known_play

    relations = Relations(
        frozenset(names), load_views(ROOT / "sql/views", ROOT / "contracts/games.yaml"), contract().games
    )
    rows = asker(QUESTIONS[name]).ask(relations.written_out(as_of(QUESTIONS[name].sql, TODAY), names))

    assert [plain(row) for row in rows] == ANSWERS[name]()


def test_every_other_question_has_a_test_of_its_own_here() -> None:
    tested = {name.removeprefix("test_answer_") for name in globals() if name.startswith("test_answer_")}

    assert tested == QUESTIONS.keys() - PORTABLE.keys()


def test_the_pipelines_own_tables_answer_every_question(stack: Stack) -> None:
    """Each column and view exists, and each right is there; planned only, since local tables may be large."""
    assert stack.is_healthy("trino")
    # As the gateway writes it, an event brings all columns of the newest contract.
    params = {"platform": "ios", "app_version": "1.0", "amount": 1.0}
    more = {"load_ms": 400, "resource": {"item": "gems", "change": 80, "reason": "purchase"}}
    bought = an_event(event_name="purchase", session_id="s-1", event_params=params, **more)
    Game.of("kart_rumble").post_until_taken([an_event(), bought])
    fill(OWN_TABLES, "Kart Rumble")
    for table in ("gold.experiment_exposures", "gold.experiment_results"):
        # Once a minute, and the sample experiments may be over.
        await_answer(ENGINEER, f"SELECT count(*) FROM {table}", timeout=180)  # noqa: S608 # names of our own
    await_answer(ENGINEER, "SELECT 1 FROM silver.kart_rumble_events WHERE error IS NULL LIMIT 1", timeout=120)
    asked = [question for name, question in QUESTIONS.items() if name not in ABOUT_AN_EARLIER_TIME]

    results = {question.name: asker(question).refusal(f"EXPLAIN {question.sql}") for question in asked}

    assert {name: refusal for name, refusal in results.items() if refusal} == {}


@pytest.fixture(scope="module")
def silver(stack: Stack) -> Iterator[NewTable]:
    """A table like silver.events with events of the last hours."""
    with new_lakehouse(stack) as place, new_table(place) as table:
        table.write(rows_of_events([*EARLIER, *LATER]))
        table.register()
        yield table


def test_answer_freshness(silver: NewTable) -> None:
    newest = {A: FIRST_EVENT + timedelta(minutes=80), B: FIRST_EVENT + timedelta(minutes=7)}
    results = asked_of("freshness", silver)

    assert [(game, at) for game, at, *_ in results] == [(B, newest[B]), (A, newest[A])]
    for game, _, seconds_ago, median, p95 in results:
        so_far = (datetime.now(UTC) - newest[game]).total_seconds()
        assert so_far - 300 <= seconds_ago <= so_far
        assert seconds_ago - 300 <= median <= p95 <= so_far + SPREAD[game].total_seconds()


def test_answer_table_history(silver: NewTable) -> None:
    [[version, committed_at, operation, _]] = asked_of("table_history", silver)

    assert version == 0
    assert operation in {"CREATE TABLE", "WRITE"}
    assert abs(datetime.now(UTC) - committed_at) < timedelta(minutes=10)


def test_answer_rows_since_a_version(stack: Stack) -> None:
    with new_lakehouse(stack) as place, new_table(place) as table:
        table.write(rows_of_events(EARLIER))
        table.write(rows_of_events(LATER))
        for version in range(2):
            table.back_date(version, timedelta(minutes=2 - version))
        table.register()

        assert asked_of("rows_since_a_version", table) == [[A, 4, 7, 3], [B, 0, 3, 3]]


def test_answer_as_it_was_an_hour_ago(stack: Stack) -> None:
    with new_lakehouse(stack) as place, new_table(place) as table:
        table.write(rows_of_events(EARLIER))
        table.back_date(0, timedelta(hours=2))
        table.write(rows_of_events(LATER))
        table.register()

        assert asked_of("as_it_was_an_hour_ago", table) == [[A, 4, FIRST_EVENT + timedelta(minutes=80)]]
