"""Every portable question of sql/questions, asked of DuckDB over play that is known to the last event."""

import pytest

from gamelake.serving.sql.duckdb import answer
from gamelake.serving.sql.questions import as_of, load_questions
from gamelake.serving.sql.relations import Relations
from gamelake.serving.sql.views import load_views
from gamelake.storage.listing import table_names
from gamelake.storage.store import Location, Store
from tests.answers.answers import ANSWERS, plain
from tests.answers.lakehouse import ROOT, contract, make_lakehouse
from tests.answers.play import TODAY

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
    return Relations(table_names(Store(location)), load_views(ROOT / "sql/views"), contract().games)


def test_there_are_twenty_portable_questions_or_more_and_each_has_its_answer() -> None:
    assert sorted(QUESTIONS) == sorted(ANSWERS)
    assert len(QUESTIONS) >= 20


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_has_the_known_answer_on_duckdb(name: str, location: Location, relations: Relations) -> None:
    sql = as_of(QUESTIONS[name].sql, TODAY)

    rows = answer(sql, relations.read_by(sql), location).to_pylist()

    expected = ANSWERS[name]()
    assert expected
    assert [plain(tuple(row.values())) for row in rows] == expected
