"""Queries by DuckDB, inside the process that asks: for a lakehouse of one machine, with nothing running.

A moment in an answer is in UTC and has no zone: DuckDB knows zones by an extension only, which no package index has.
"""

import duckdb
import pyarrow as pa

from gamelake.model.errors import QuestionError
from gamelake.serving.sql.dialects import QueryEngine, translated
from gamelake.serving.sql.relations import Reads
from gamelake.storage.appends import schema_of
from gamelake.storage.datasets import dataset
from gamelake.storage.delta_log import live_files
from gamelake.storage.store import Location
from gamelake.storage.tables import open_table


def answer(sql: str, reads: Reads, location: Location) -> pa.Table:
    """The result of a Trino statement, run by DuckDB; of each table only the files that it needs are read.

    Returns:
        The statement's columns and rows, in its order.

    Raises:
        QuestionError: DuckDB can't answer it; with DuckDB's message.
    """
    with duckdb.connect(":memory:") as connection:
        for name in reads.tables:
            _give(connection, name, location)
        try:
            for name, statement in reads.views:
                connection.execute(f'CREATE VIEW "{name}" AS {_said(statement)}')
            return connection.sql(_said(sql)).to_arrow_table()
        except duckdb.Error as error:
            raise QuestionError(f"DuckDB can't answer this: {error}") from error


def _give(connection: duckdb.DuckDBPyConnection, name: str, location: Location) -> None:
    """Name a table, its moments in UTC and without a zone."""
    path = name.replace(".", "/", 1)
    handle = open_table(location, path)
    schema = schema_of(handle)
    connection.register(f"files of {name}", dataset(location, path, schema, live_files(handle)))
    # Computed, so that no condition on a moment is handed to Arrow, which compares none with a zone to one without.
    moments = [field.name for field in schema if pa.types.is_timestamp(field.type)]
    plain = ", ".join(f'make_timestamp(epoch_us("{moment}")) AS "{moment}"' for moment in moments)
    replaced = f"REPLACE ({plain})" if moments else ""
    connection.execute(f'CREATE VIEW "{name}" AS SELECT * {replaced} FROM "files of {name}"')  # noqa: S608 # names


def _said(sql: str) -> str:
    return translated(sql, QueryEngine.DUCKDB, str)
