"""DuckDB answers what is in the list as Trino does, and refuses the rest."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from gamelake.model.errors import QuestionError
from gamelake.objects.store import Location
from gamelake.serving.sql.dialects import Translator
from gamelake.serving.sql.duckdb import answer
from gamelake.serving.sql.query_engine import QueryEngine
from gamelake.serving.sql.relations import Relations
from tests.answers.trino_results import REFUSED, REFUSED_BY_SPARK, ROWS, is_same, make_rows, question, results


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> tuple[Location, Relations]:
    return make_rows(str(tmp_path_factory.mktemp("lake")))


@pytest.fixture(autouse=True)
def _the_zone_of_the_machine() -> Iterator[None]:
    yield
    time.tzset()


@pytest.mark.parametrize(("expression", "wanted"), results(QueryEngine.DUCKDB).items())
def test_duckdb_has_trinos_result(expression: str, wanted: object, rows: tuple[Location, Relations]) -> None:
    location, relations = rows
    sql = question({expression: wanted})

    [found] = answer(sql, relations.read_by(sql), location)["c0"].to_pylist()

    assert is_same(found, wanted), found


@pytest.mark.parametrize("engine", [QueryEngine.DUCKDB, QueryEngine.SPARK])
@pytest.mark.parametrize("expression", REFUSED)
def test_what_might_be_another_number_is_an_error(engine: QueryEngine, expression: str) -> None:
    with pytest.raises(QuestionError, match="only Trino answers"):
        _translated(engine, expression)


@pytest.mark.parametrize("expression", REFUSED_BY_SPARK)
def test_what_spark_counts_in_another_way_is_an_error(expression: str) -> None:
    with pytest.raises(QuestionError, match="only Trino answers"):
        _translated(QueryEngine.SPARK, expression)


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Etc/GMT+12"])
def test_today_is_the_platforms_wherever_the_client_is(
    zone: str, rows: tuple[Location, Relations], monkeypatch: pytest.MonkeyPatch
) -> None:
    location, relations = rows
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    before = datetime.now(UTC).date()

    [today] = answer("SELECT current_date AS today", relations.read_by("SELECT 1"), location)["today"].to_pylist()

    assert before <= today <= datetime.now(UTC).date()


def test_a_type_is_known_through_views_and_subqueries() -> None:
    translator = Translator(QueryEngine.DUCKDB, str)
    translator.add_table("silver.events", ROWS.schema)
    translator.view(
        "gold.days", "SELECT event_date, count(*) AS events, sum(amount) AS paid FROM silver.events GROUP BY 1"
    )

    said = translator.question("WITH d AS (SELECT * FROM gold.days) SELECT events / 2, paid / events FROM d")

    assert "events // 2" in said
    assert "paid / events" in said
    with pytest.raises(QuestionError, match="its type is not known here"):
        translator.question("SELECT lost / 2 FROM gold.days")


def _translated(engine: QueryEngine, expression: str) -> str:
    translator = Translator(engine, lambda name: name.replace(".", "__"))
    translator.add_table("silver.events", ROWS.schema)
    return translator.question(f"SELECT {expression} AS c0")
