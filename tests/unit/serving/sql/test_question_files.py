"""The files of sql/ say what they are, and their list names them all."""

import re
from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

from gamelake.model.errors import QuestionError
from gamelake.serving.sql.questions import QuestionReader, load_question, load_questions
from gamelake.serving.sql.views import load_views

SQL = Path(__file__).parents[4] / "sql"
HEAD = "-- How many?\n-- Grain: one row per day.\n-- Asked by: analyst.\n-- For: analyst.\n"


def test_the_list_of_questions_is_that_of_the_files() -> None:
    listed = re.findall(r"`(\w+)\.sql`", (SQL / "README.md").read_text().split("\n## ")[0])

    assert sorted(listed) == sorted(load_questions(SQL / "questions"))


def test_the_list_of_views_is_that_of_the_files() -> None:
    listed = re.findall(r"^\| `(\w+\.\w+)` \| .+ \|$", (SQL.parent / "docs/sql.md").read_text(), re.MULTILINE)

    views = sorted(view.name for view in load_views(SQL / "views", SQL.parent / "contracts/games.yaml"))
    assert sorted(name for name in listed if name in views) == views


@pytest.mark.parametrize("name", load_questions(SQL / "questions"))
def test_a_question_says_who_may_ask_and_what_a_row_is(name: str) -> None:
    question = load_questions(SQL / "questions")[name]

    assert question.grain.startswith("one row per ")
    assert question.asked_by in {"analyst", "engineer", "support"}
    assert question.reader.value in question.sql.splitlines()[3]
    assert "SELECT *" not in question.sql
    assert ";" not in re.sub("--.*", "", question.sql)


@pytest.mark.parametrize("name", load_questions(SQL / "questions"))
def test_no_column_of_an_answer_has_the_name_of_a_table_that_the_order_names(name: str) -> None:
    """In ORDER BY, Trino takes `players.game_name` as a field of the column `players`."""
    statement = sqlglot.parse_one(load_questions(SQL / "questions")[name].sql, dialect="trino")

    for query in statement.find_all(exp.Select):
        order = query.args.get("order")
        tables = {column.table for column in order.find_all(exp.Column)} if order else set()
        assert not tables & set(query.named_selects)


def test_each_reader_has_a_question() -> None:
    assert {each.reader for each in load_questions(SQL / "questions").values()} == set(QuestionReader)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("SELECT 1", "the first line must be the question"),
        ("-- How many?\nSELECT 1", "must be the second line and the third"),
        (HEAD.replace("-- For: analyst.\n", "") + "SELECT 1", "the fourth line must be '-- For: <reader>.'"),
        (HEAD.replace("For: analyst", "For: everyone") + "SELECT 1", "with one of: product manager, live-ops manager"),
        (f"{HEAD}-- Runs on: Oracle.\nSELECT 1", "must be one of trino, spark, duckdb"),
    ],
)
def test_a_file_that_does_not_say_it_is_refused_by_name(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "how_many.sql"
    file.write_text(text)

    with pytest.raises(QuestionError, match=f"how_many.sql.*{problem}"):
        load_question(file)
