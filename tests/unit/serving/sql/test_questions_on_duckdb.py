"""Every portable question of sql/questions, asked of DuckDB over play that is known to the last event."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from gamelake.delta.listing import table_names
from gamelake.model.errors import QuestionError
from gamelake.objects.store import Location, Store
from gamelake.serving.sql.duckdb import answer
from gamelake.serving.sql.questions import as_of, load_questions
from gamelake.serving.sql.relations import Relations
from gamelake.serving.sql.views import load_views
from tests.answers.answers import ANSWERS, plain
from tests.answers.lakehouse import ROOT, SILVER_SCHEMA, contract, make_lakehouse, row_of
from tests.answers.play import TODAY, Event

QUESTIONS = {name: each for name, each in load_questions(ROOT / "sql/questions").items() if each.is_portable}


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> Location:
    """A lakehouse of the known play."""
    location = Location(uri=f"file://{tmp_path_factory.mktemp('lake')}")
    make_lakehouse(location)
    return location


@pytest.fixture(scope="module")
def relations(location: Location) -> Relations:
    """Its tables, and the views over them."""
    return Relations(
        table_names(Store(location)), load_views(ROOT / "sql/views", ROOT / "contracts/games.yaml"), contract().games
    )


def test_there_are_twenty_portable_questions_or_more_and_each_has_its_answer() -> None:
    assert sorted(QUESTIONS) == sorted(ANSWERS)
    assert len(QUESTIONS) >= 20


@pytest.mark.parametrize("name", ["events_per_hour", "bookings_per_hour"])
def test_hours_to_come_are_in_no_answer(name: str, tmp_path: Path) -> None:
    now, location = datetime.now(UTC).replace(microsecond=0), Location(uri=f"file://{tmp_path}")
    bought = Event(
        event_time=now - timedelta(minutes=1), event_name="purchase", game_name="Kart Rumble", gamer_id="ada",
        session_id=None, platform="ios", app_version="1", amount=0.99,
    )  # fmt: skip
    # A device whose clock is ahead; the contract allows it up to two days.
    ahead = replace(bought, event_time=now + timedelta(hours=20))
    rows = pa.Table.from_pylist([row_of(bought), row_of(ahead)], SILVER_SCHEMA)
    write_deltalake(location.child("silver/events"), rows, partition_by=["event_date"])
    views = load_views(ROOT / "sql/views", ROOT / "contracts/games.yaml")
    relations = Relations(table_names(Store(location)), views, contract().games)

    answered = answer(QUESTIONS[name].sql, relations.read_by(QUESTIONS[name].sql), location).to_pylist()

    assert [row["hour"] for row in answered] == [bought.event_time.replace(minute=0, second=0, tzinfo=None)]


def test_a_missing_table_names_what_makes_it_where_the_platform_runs_and_in_the_demo(tmp_path: Path) -> None:
    empty = Relations(frozenset(), (), contract().games)
    some = Relations(frozenset({"silver.events"}), (), contract().games)

    with pytest.raises(QuestionError, match=r"a running platform makes it from its first events; .* run make gold"):
        some.read_by("SELECT 1 FROM gold.kpi_hourly")
    with pytest.raises(QuestionError, match="no tables yet; make demo fills one, as do make dev and make up"):
        empty.read_by("SELECT 1 FROM silver.events")
    with pytest.raises(QuestionError, match=r"silver has: silver\.events; did you mean silver\.events\?"):
        some.read_by("SELECT 1 FROM silver.evnts")


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_has_the_known_answer_on_duckdb(name: str, location: Location, relations: Relations) -> None:
    sql = as_of(QUESTIONS[name].sql, TODAY)

    rows = answer(sql, relations.read_by(sql), location).to_pylist()

    expected = ANSWERS[name]()
    assert expected
    assert [plain(tuple(row.values())) for row in rows] == expected
