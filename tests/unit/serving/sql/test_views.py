"""Views: in which order they are made, for which games, and what each column means."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from gamelake.contract.games import GameSpec
from gamelake.model.errors import QuestionError
from gamelake.serving.sql.dialects import Translator, names_in
from gamelake.serving.sql.query_engine import QueryEngine
from gamelake.serving.sql.relations import Relations
from gamelake.serving.sql.views import View, load_views

SQL = Path(__file__).parents[4] / "sql"
GAMES_FILE = SQL.parent / "contracts/games.yaml"
CHESS, POOL = GameSpec(name="chess", match=("Chess",)), GameSpec(name="pool", match=("Pirate's Pool", "Pool"))
Writer = Callable[[str, str], None]


@pytest.fixture
def write(tmp_path: Path) -> Writer:
    """Writes a view with one column, `a`."""

    def file(name: str, sql: str) -> None:
        path = tmp_path / (name.replace(".", "/") + ".sql")
        path.parent.mkdir(exist_ok=True)
        each = "-- For each game: all.\n" if "{game}" in sql else ""
        path.write_text(f"-- What it is.\n-- Grain: one row per a.\n{each}-- Column a: what a is\n{sql}\n")

    return file


def test_a_view_comes_after_those_that_it_reads(tmp_path: Path, write: Writer) -> None:
    write("gold.aa", "SELECT a FROM gold.zz")
    write("gold.zz", "SELECT a FROM silver.events")

    assert [view.name for view in load_views(tmp_path, GAMES_FILE)] == ["gold.zz", "gold.aa"]


def test_views_that_read_each_other_are_refused(tmp_path: Path, write: Writer) -> None:
    write("gold.aa", "SELECT a FROM gold.zz")
    write("gold.zz", "SELECT a FROM gold.aa")

    with pytest.raises(QuestionError, match=r"gold\.aa, gold\.zz"):
        load_views(tmp_path, GAMES_FILE)


def test_a_view_for_each_game_reads_the_tables_that_are_there(tmp_path: Path, write: Writer) -> None:
    write("gold.players", "SELECT '{game_name}' AS a FROM gold.{game}_player_agg")
    [view] = load_views(tmp_path, GAMES_FILE)

    both = view.over([CHESS, POOL], {"gold.chess_player_agg", "gold.pool_player_agg"})

    assert both is not None
    # The column keeps its type with any other games: Trino refuses a view over it otherwise.
    assert "CAST('Pirate''s Pool' AS varchar) AS a" in both
    assert names_in(view.over([CHESS, POOL], {"gold.pool_player_agg"}) or "") == {"gold.pool_player_agg"}
    assert view.over([CHESS, POOL], set()) is None


def test_each_column_of_each_view_says_what_it_is(tmp_path: Path, write: Writer) -> None:
    write("gold.aa", "SELECT a, b FROM silver.events")
    [view] = load_views(tmp_path, GAMES_FILE)

    assert view.undescribed() == {"b"}
    assert {each.name: each.undescribed() for each in load_views(SQL / "views", GAMES_FILE) if each.undescribed()} == {}


def test_a_placeholder_is_what_a_metric_means_in_a_comment_and_its_sql_in_the_statement(
    tmp_path: Path, write: Writer
) -> None:
    write(
        "gold.aa",
        "SELECT {{ Metric('first_event') }} AS a FROM silver.events WHERE {{ Dimension('event__is_purchase') }}",
    )
    file = tmp_path / "gold/aa.sql"
    file.write_text(file.read_text().replace("what a is", "{{ Metric('first_event') }}, in UTC"))

    [view] = load_views(tmp_path, GAMES_FILE)

    assert view.columns == (("a", "the first event, in UTC"),)
    assert view.sql.startswith("SELECT min(event_time) FILTER (WHERE (event_name IS DISTINCT FROM 'smoke_test')) AS a")
    assert view.sql.endswith("WHERE (event_name = 'purchase' AND amount IS NOT NULL)")


@pytest.mark.parametrize("term", ["Metric('revenue')", "Dimension('is_purchase')", "metric('players')", ""])
def test_a_placeholder_of_no_metric_is_refused_with_file_and_line(tmp_path: Path, write: Writer, term: str) -> None:
    write("gold.aa", f"SELECT\n  {{{{ {term} }}}} AS a FROM silver.events")

    with pytest.raises(
        QuestionError, match=rf"gold/aa\.sql:5: the contract has no {re.escape(term)}; it has Dimension"
    ):
        load_views(tmp_path, GAMES_FILE)


def test_what_a_question_reads_is_found_through_the_views(tmp_path: Path, write: Writer) -> None:
    write("gold.days", "SELECT a FROM silver.events")
    write("gold.weeks", "SELECT a FROM gold.days")
    relations = Relations(frozenset({"silver.events", "silver.other"}), load_views(tmp_path, GAMES_FILE), [])

    reads = relations.read_by("WITH own AS (SELECT a FROM gold.weeks) SELECT a FROM own")

    assert reads.tables == {"silver.events"}
    assert [name for name, _ in reads.views] == ["gold.days", "gold.weeks"]


def test_a_view_that_a_comment_names_is_written_out_in_the_statement_alone() -> None:
    views = [View("gold.days", "", (), "SELECT a\nFROM silver.events")]
    relations = Relations(frozenset({"silver.events"}), views, [])

    written = relations.written_out("-- Of gold.days.\nSELECT a FROM gold.days", {"silver.events": "other.events"})

    assert written == "SELECT a FROM (SELECT a\nFROM other.events)"


def test_a_table_that_is_not_there_is_named_with_the_remedy() -> None:
    views = [View("gold.players", "", (), "SELECT a FROM gold.{game}_player_agg")]
    relations = Relations(frozenset({"silver.events"}), views, [CHESS])

    with pytest.raises(QuestionError, match=r"no view gold\.players.*make gold"):
        relations.read_by("SELECT a FROM gold.players")
    with pytest.raises(QuestionError, match=r"no table silver\.evnts.*silver\.events"):
        relations.read_by("SELECT a FROM silver.evnts")


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("SELEC 1 FROM", "not valid Trino SQL"),
        ("SELECT 1; SELECT 2", "one statement"),
        ("DROP TABLE silver.events", "not DROP"),
    ],
)
def test_what_is_no_question_is_refused(sql: str, problem: str) -> None:
    with pytest.raises(QuestionError, match=problem):
        Translator(QueryEngine.DUCKDB, str).question(sql)
