"""Runs queries with DuckDB inside the calling process, for a lakehouse on one machine without a running service.

A timestamp in an answer is in UTC and has no zone. DuckDB's package has zones built in; only days of games use them.
"""

import duckdb
import pyarrow as pa

from gamelake.delta.appends import schema_of
from gamelake.delta.log.codec import live_files
from gamelake.delta.tables import open_table
from gamelake.model.errors import QuestionError
from gamelake.objects.store import Location
from gamelake.scans.datasets import dataset
from gamelake.serving.sql.dialects import Translator
from gamelake.serving.sql.query_engine import QueryEngine
from gamelake.serving.sql.relations import Reads


def answer(sql: str, reads: Reads, location: Location) -> pa.Table:
    """Run a Trino statement with DuckDB, which reads only the files that the statement needs.

    Args:
        sql: the statement, in Trino's SQL.
        reads: the tables and views that the statement reads.
        location: the lakehouse.

    Returns:
        The statement's columns and rows, in the statement's order.

    Raises:
        QuestionError: DuckDB can't answer it; includes DuckDB's message.
    """
    translator = Translator(QueryEngine.DUCKDB, str)
    with duckdb.connect(":memory:") as connection:
        for name in reads.tables:
            translator.add_table(name, _give(connection, name, location))
        try:
            for name, statement in reads.views:
                connection.execute(f'CREATE VIEW "{name}" AS {translator.view(name, statement)}')
            return connection.sql(translator.question(sql)).to_arrow_table()
        except duckdb.Error as error:
            raise QuestionError(f"DuckDB can't answer this: {error}") from error


def _give(connection: duckdb.DuckDBPyConnection, name: str, location: Location) -> pa.Schema:
    """Create a view of a table, with timestamps in UTC and without a zone; return the table's columns."""
    path = name.replace(".", "/", 1)
    handle = open_table(location, path)
    schema = schema_of(handle)
    connection.register(f"files of {name}", dataset(location, path, schema, live_files(handle)))
    # The columns are computed, so that DuckDB passes no condition on a timestamp to Arrow, which can't compare a
    # timestamp with a zone to one without.
    moments = [field.name for field in schema if pa.types.is_timestamp(field.type)]
    plain = ", ".join(f'make_timestamp(epoch_us("{moment}")) AS "{moment}"' for moment in moments)
    replaced = f"REPLACE ({plain})" if moments else ""
    connection.execute(f'CREATE VIEW "{name}" AS SELECT * {replaced} FROM "files of {name}"')  # noqa: S608 # names
    return schema
