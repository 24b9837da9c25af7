"""The SQL engine (DuckDB) that evaluates rules: one per process, one thread, without access to files or network.

Timestamps have no time zone in it and are in UTC: DuckDB needs an extension for time zones.
"""

from functools import cache

import duckdb
import pyarrow as pa

from gamelake.storage.sql_engine import without_zones

_MEMORY = "512MiB"
ROWS = "rows"


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(
        ":memory:",
        config={"threads": 1, "memory_limit": _MEMORY, "enable_external_access": "false", "temp_directory": ""},
    )
    connection.execute("SET lock_configuration = true")
    return connection


def engine() -> duckdb.DuckDBPyConnection:
    """A cursor of this process's engine, for the calling thread."""
    return _connection().cursor()


def rows_without_zones(rows: pa.RecordBatch) -> pa.Table:
    """The same columns in the same order; timestamps, also nested ones, in microseconds without a time zone."""
    kinds = without_zones(rows.schema).types
    columns = [
        column if column.type == kind else column.cast(kind) for column, kind in zip(rows.columns, kinds, strict=True)
    ]
    return pa.Table.from_arrays(columns, names=rows.schema.names)
