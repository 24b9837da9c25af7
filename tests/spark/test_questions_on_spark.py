"""Every portable question of sql/questions, asked of Spark over play that is known to the last event."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from gamelake.delta.listing import table_names
from gamelake.objects.store import Location, Store
from gamelake.serving.sql.questions import as_of, load_questions
from gamelake.serving.sql.relations import Relations
from gamelake.serving.sql.views import load_views
from jobs.ask import answer_of_spark
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
    return Relations(
        table_names(Store(location)), load_views(ROOT / "sql/views", ROOT / "contracts/games.yaml"), contract().games
    )


@pytest.fixture(scope="module")
def few_partitions(spark: SparkSession) -> Iterator[SparkSession]:
    """The session with as many partitions as some thousand rows need."""
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    yield spark
    spark.conf.unset("spark.sql.shuffle.partitions")


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_has_the_known_answer_on_spark(
    name: str, few_partitions: SparkSession, location: Location, relations: Relations
) -> None:
    sql = as_of(QUESTIONS[name].sql, TODAY)

    rows = answer_of_spark(few_partitions, sql, relations.read_by(sql), location).to_pylist()

    assert [plain(tuple(row.values())) for row in rows] == ANSWERS[name]()
