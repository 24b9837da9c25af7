"""Views: in which order they are made, for which games, and what each column means."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gamelake.model.errors import QuestionError
from gamelake.model.games import GameSpec
from gamelake.serving.sql.dialects import QueryEngine, names_in, translated
from gamelake.serving.sql.relations import Relations
from gamelake.serving.sql.views import View, load_views

SQL = Path(__file__).parents[4] / "sql"
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

    assert [view.name for view in load_views(tmp_path)] == ["gold.zz", "gold.aa"]


def test_views_that_read_each_other_are_refused(tmp_path: Path, write: Writer) -> None:
    write("gold.aa", "SELECT a FROM gold.zz")
    write("gold.zz", "SELECT a FROM gold.aa")

    with pytest.raises(QuestionError, match=r"gold\.aa, gold\.zz"):
        load_views(tmp_path)


def test_a_view_for_each_game_reads_the_tables_that_are_there(tmp_path: Path, write: Writer) -> None:
    write("gold.players", "SELECT '{game_name}' AS a FROM gold.{game}_player_agg")
    [view] = load_views(tmp_path)

    both = view.over([CHESS, POOL], {"gold.chess_player_agg", "gold.pool_player_agg"})

    assert both is not None
    assert "'Pirate''s Pool'" in both
    assert names_in(view.over([CHESS, POOL], {"gold.pool_player_agg"}) or "") == {"gold.pool_player_agg"}
    assert view.over([CHESS, POOL], set()) is None


def test_each_column_of_each_view_says_what_it_is(tmp_path: Path, write: Writer) -> None:
    write("gold.aa", "SELECT a, b FROM silver.events")
    [view] = load_views(tmp_path)

    assert view.undescribed() == {"b"}
    assert {each.name: each.undescribed() for each in load_views(SQL / "views") if each.undescribed()} == {}


def test_what_a_question_reads_is_found_through_the_views(tmp_path: Path, write: Writer) -> None:
    write("gold.days", "SELECT a FROM silver.events")
    write("gold.weeks", "SELECT a FROM gold.days")
    relations = Relations(frozenset({"silver.events", "silver.other"}), load_views(tmp_path), [])

    reads = relations.read_by("WITH own AS (SELECT a FROM gold.weeks) SELECT a FROM own")

    assert reads.tables == {"silver.events"}
    assert [name for name, _ in reads.views] == ["gold.days", "gold.weeks"]


def test_a_table_that_is_not_there_is_named_with_the_remedy() -> None:
    views = [View("gold.players", "", (), "SELECT a FROM gold.{game}_player_agg")]
    relations = Relations(frozenset({"silver.events"}), views, [CHESS])

    with pytest.raises(QuestionError, match=r"no view gold\.players.*make gold"):
        relations.read_by("SELECT a FROM gold.players")
    with pytest.raises(QuestionError, match=r"no table silver\.evnts.*silver\.events"):
        relations.read_by("SELECT a FROM silver.evnts")


@pytest.mark.parametrize(
    ("sql", "problem"),
    [("SELEC 1 FROM", "no SQL"), ("SELECT 1; SELECT 2", "one statement"), ("DROP TABLE silver.events", "not DROP")],
)
def test_what_is_no_question_is_refused(sql: str, problem: str) -> None:
    with pytest.raises(QuestionError, match=problem):
        translated(sql, QueryEngine.DUCKDB, str)
