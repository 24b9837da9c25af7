"""The SQL engine (DuckDB) that evaluates rules: one per process, one thread, without access to files or network.

Timestamps have no time zone in it and are in UTC: DuckDB needs an extension for time zones.
"""

from functools import cache

import duckdb
import pyarrow as pa

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


def without_zones(rows: pa.RecordBatch) -> pa.Table:
    """The same columns in the same order; timestamps, also nested ones, in microseconds without a time zone."""
    columns = [_without_zone(column) for column in rows.columns]
    return pa.Table.from_arrays(columns, names=rows.schema.names)


def _without_zone(column: pa.Array) -> pa.Array:
    plain = _plain(column.type)
    return column if plain == column.type else column.cast(plain)


def _plain(kind: pa.DataType) -> pa.DataType:
    """The same type, with timestamps without a time zone."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us")
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_plain(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_plain(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    return kind
