"""Runs a SQL query, written for Trino, over the lakehouse with nothing else running.

The statement, or a file of sql/questions, is said in the words of DuckDB or of Spark and asked there. Settings come
from GAMELAKE_* variables (docs/settings.md). Without a question it lists those of sql/questions.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession

from gamelake.command import command_parser, day, one_of
from gamelake.contract.games import load_games
from gamelake.delta.appends import schema_of
from gamelake.delta.listing import table_names
from gamelake.delta.tables import open_table
from gamelake.model.errors import QuestionError
from gamelake.objects.settings import TableSettings
from gamelake.objects.store import Location, Store
from gamelake.program import OK, run
from gamelake.serving.sql import duckdb as duckdb_engine
from gamelake.serving.sql.dialects import Translator
from gamelake.serving.sql.output import OutputFormat, written
from gamelake.serving.sql.query_engine import QueryEngine
from gamelake.serving.sql.questions import as_of, load_question, load_questions
from gamelake.serving.sql.relations import Reads, Relations
from gamelake.serving.sql.views import load_views
from gamelake.session import spark_session

SQL = Path(__file__).parents[1] / "sql"


def main(arguments: Sequence[str] | None = None) -> int:
    """Answer one question, or list those there are."""
    options = _parse(arguments)
    sql = _statement(options)
    if sql is None:
        print(_listing(options.sql))
        return OK
    settings = TableSettings.from_env()
    store = Store(settings.lakehouse.location)
    relations = Relations(
        table_names(store),
        load_views(options.sql / "views", settings.games_file),
        load_games(settings.games_file).games,
    )
    print(written(_RUN_BY[options.engine](sql, relations.read_by(sql), settings), options.format), end="")
    return OK


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = command_parser(__doc__)
    asked = parser.add_mutually_exclusive_group()
    asked.add_argument("question", nargs="?", help="a statement in Trino's SQL; - reads it from standard input")
    asked.add_argument("--file", type=Path, help="a file with a statement, such as sql/questions/retention.sql")
    engines = [QueryEngine.DUCKDB, QueryEngine.SPARK]
    parser.add_argument("--engine", type=one_of(engines), default=QueryEngine.DUCKDB, help="the engine (duckdb)")
    parser.add_argument(
        "--format", type=one_of(OutputFormat), default=OutputFormat.TABLE, help="how it is written (table)"
    )
    parser.add_argument("--as-of", type=day, metavar="DAY", help="the day that current_date is, in UTC")
    parser.add_argument("--sql", type=Path, default=SQL, help="the folder of views and questions")
    return parser.parse_args(arguments)


def _statement(options: argparse.Namespace) -> str | None:
    if options.file is not None:
        if not options.file.is_file():
            raise QuestionError(f"there is no file {options.file}; without a question the list of them is printed")
        sql = options.file.read_text(encoding="utf-8")
        if options.file.parent.name == "questions" and options.engine not in load_question(options.file).engines:
            raise QuestionError(f"{options.file} asks for what Trino alone knows; make up starts one")
    elif options.question:
        sql = sys.stdin.read() if options.question == "-" else options.question
    else:
        return None
    return sql if options.as_of is None else as_of(sql, options.as_of)


def _listing(folder: Path) -> str:
    questions = [each for each in load_questions(folder / "questions").values() if each.is_portable]
    width = max(len(each.name) for each in questions)
    lines = (f"{each.name:<{width}}  {each.title}" for each in questions)
    return "\n".join([*lines, "", "Ask one with --file sql/questions/<name>.sql, or a statement of your own."])


def _by_duckdb(sql: str, reads: Reads, settings: TableSettings) -> pa.Table:
    return duckdb_engine.answer(sql, reads, settings.lakehouse.location)


def _by_spark(sql: str, reads: Reads, settings: TableSettings) -> pa.Table:
    spark = spark_session("ask", settings.lakehouse.location, settings.spark_jars)
    try:
        return answer_of_spark(spark, sql, reads, settings.lakehouse.location)
    except (AnalysisException, ParseException) as error:
        raise QuestionError(f"Spark can't answer this: {error.getMessage() or error}") from error
    finally:
        spark.stop()


def answer_of_spark(spark: SparkSession, sql: str, reads: Reads, location: Location) -> pa.Table:
    """Return the result of a Trino statement, run by a Spark session."""
    translator = Translator(QueryEngine.SPARK, _spark_name)
    for name in reads.tables:
        path = name.replace(".", "/", 1)
        translator.add_table(name, schema_of(open_table(location, path)))
        spark.read.format("delta").load(location.child(path)).createOrReplaceTempView(_spark_name(name))
    for name, statement in reads.views:
        spark.sql(translator.view(name, statement)).createOrReplaceTempView(_spark_name(name))
    return spark.sql(translator.question(sql)).toArrow()


def _spark_name(name: str) -> str:
    return name.replace(".", "__")


_RUN_BY: Mapping[QueryEngine, Callable[[str, Reads, TableSettings], pa.Table]] = {
    QueryEngine.DUCKDB: _by_duckdb,
    QueryEngine.SPARK: _by_spark,
}


if __name__ == "__main__":
    run(main, is_command=True)
