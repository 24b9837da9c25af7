"""The SQL engine (DuckDB) that evaluates rules: one per process, one thread, without access to files or network.

Timestamps have no time zone in it and are in UTC: DuckDB needs an extension for time zones.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.storage.sql_engine import without_zones

_MEMORY = "512MiB"
ROWS = "rows"
# The first and last finite timestamp of DuckDB, in microseconds since 1970.
_FIRST, _LAST = -9_223_372_022_400_000_000, 2**63 - 2


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
    """The same columns in the same order; timestamps, also nested ones, in microseconds without a time zone.

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
    if all(_is_within_limits(each) for each in _timestamps(array)):
        return array
    numbers = array.cast(_with_numbers(array.type))
    if not pa.types.is_timestamp(array.type):
        # Arrow has no function for what is nested, and such values are rare.
        kept = [_nearest(value, array.type) for value in numbers.to_pylist()]
        return pa.array(kept, numbers.type).cast(array.type)
    limited = pc.min_element_wise(pc.max_element_wise(numbers, _FIRST, skip_nulls=False), _LAST, skip_nulls=False)
    return limited.cast(array.type)


def _timestamps(array: pa.Array) -> Iterator[pa.Array]:
    """The timestamps in an array, with those around it if it is a slice."""
    kind = array.type
    if pa.types.is_timestamp(kind):
        yield array
    elif pa.types.is_struct(kind):
        for place in range(kind.num_fields):
            yield from _timestamps(array.field(place))
    elif pa.types.is_map(kind):
        yield from _timestamps(array.items)
    elif pa.types.is_list(kind):
        yield from _timestamps(array.values)


def _is_within_limits(timestamps: pa.TimestampArray) -> bool:
    limits = pc.min_max(timestamps.cast(pa.int64()))
    least, greatest = limits["min"].as_py(), limits["max"].as_py()
    return least is None or (least >= _FIRST and greatest <= _LAST)


def _with_numbers(kind: pa.DataType) -> pa.DataType:
    """A type with int64 for timestamps."""
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_with_numbers(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _with_numbers(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_with_numbers(kind.value_type)))
    return kind


def _nearest(value: Any, kind: pa.DataType) -> Any:  # noqa: ANN401 # any value of a column, as pyarrow gives it
    """A value of a type in which timestamps are numbers, with these within the limits."""
    if value is None:
        return None
    if pa.types.is_timestamp(kind):
        return min(max(value, _FIRST), _LAST)
    if pa.types.is_struct(kind):
        return {field.name: _nearest(value[field.name], field.type) for field in kind}
    if pa.types.is_map(kind):
        return [(key, _nearest(item, kind.item_type)) for key, item in value]
    if pa.types.is_list(kind):
        return [_nearest(item, kind.value_type) for item in value]
    return value
