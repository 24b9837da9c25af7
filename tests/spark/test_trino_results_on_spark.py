"""Spark answers what is in the list as Trino does."""

from pathlib import Path

from pyspark.sql import SparkSession

from gamelake.serving.sql.query_engine import QueryEngine
from jobs.ask import answer_of_spark
from tests.answers.trino_results import is_same, make_rows, question, results


def test_spark_has_trinos_results(spark: SparkSession, tmp_path: Path) -> None:
    location, relations = make_rows(str(tmp_path))
    wanted = results(QueryEngine.SPARK)
    sql = question(wanted)

    [found] = answer_of_spark(spark, sql, relations.read_by(sql), location).to_pylist()

    answers = dict(zip(wanted, found.values(), strict=True))
    assert {text: answers[text] for text, value in wanted.items() if not is_same(answers[text], value)} == {}
