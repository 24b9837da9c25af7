"""The SQL engine (DuckDB) that evaluates rules: one per process, one thread, without access to files or network.

Timestamps have no time zone in it and are in UTC: DuckDB needs an extension for time zones.
"""

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.model.worker_cache import per_worker
from gamelake.scans.far_times import timestamps_in, with_changed_times, with_numbers
from gamelake.scans.sql_engine import without_zones

_MEMORY = "512MiB"
ROWS = "rows"
# The first and last finite timestamp of DuckDB, in microseconds since 1970.
_FIRST, _LAST = -9_223_372_022_400_000_000, 2**63 - 2


def _connect() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(
        ":memory:",
        config={"threads": 1, "memory_limit": _MEMORY, "enable_external_access": "false", "temp_directory": ""},
    )
    connection.execute("SET lock_configuration = true")
    return connection


def engine() -> duckdb.DuckDBPyConnection:
    """Return a cursor of this process's engine, for the calling thread."""
    return per_worker(duckdb.DuckDBPyConnection, (), _connect).cursor()


def rows_without_zones(rows: pa.RecordBatch) -> pa.Table:
    """Return the same columns in the same order; timestamps, also nested ones, in microseconds without a time zone.

    A timestamp beyond DuckDB's limits becomes the nearest one that it can hold: as text or in a calculation it would be
    an internal error, which would stop the task, and with it the stream.
    """
    kinds = without_zones(rows.schema).types
    columns = [
        column if column.type == kind else _within_limits(column.cast(kind))
        for column, kind in zip(rows.columns, kinds, strict=True)
    ]
    return pa.Table.from_arrays(columns, names=rows.schema.names)


def _within_limits(array: pa.Array) -> pa.Array:
    if all(_is_within_limits(each) for each in timestamps_in(array)):
        return array
    numbers = array.cast(with_numbers(array.type))
    if not pa.types.is_timestamp(array.type):
        # Arrow has no function for what is nested, and such values are rare.
        kept = [with_changed_times(value, array.type, _nearest) for value in numbers.to_pylist()]
        return pa.array(kept, numbers.type).cast(array.type)
    limited = pc.min_element_wise(pc.max_element_wise(numbers, _FIRST, skip_nulls=False), _LAST, skip_nulls=False)
    return limited.cast(array.type)


def _is_within_limits(timestamps: pa.TimestampArray) -> bool:
    limits = pc.min_max(timestamps.cast(pa.int64()))
    least, greatest = limits["min"].as_py(), limits["max"].as_py()
    return least is None or (least >= _FIRST and greatest <= _LAST)


def _nearest(microseconds: int) -> int:
    return min(max(microseconds, _FIRST), _LAST)
