"""The least and greatest values of a column in each data file of a table, if the table's log has them."""

import pyarrow as pa
import pyarrow.compute as pc

# The times of the platform's tables are in microseconds.
_MILLISECOND = 1_000


def bounds_of(actions: pa.Table, column: str) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Return the least and the greatest value of a column in each file.

    Spark and delta-rs truncate the times of their statistics to milliseconds, so the greatest time is rounded up to the
    end of its millisecond. Source: Delta Transaction Log Protocol, heading "Per-file Statistics".

    Args:
        actions: delta-rs's table of add actions, not flattened; its columns `min` and `max` are structs.
        column: a top-level column of the table.

    Returns:
        Two arrays of the column's type with one value for each row of `actions`, in order; null where the log has no
        bound. If no file has one, both arrays have the type null.
    """
    least, greatest = (_bound(actions, side, column) for side in ("min", "max"))
    return least, _end_of_millisecond(greatest) if pa.types.is_timestamp(greatest.type) else greatest


def _bound(actions: pa.Table, side: str, column: str) -> pa.ChunkedArray:
    if side not in actions.column_names or actions.schema.field(side).type.get_field_index(column) < 0:
        return pa.chunked_array([pa.nulls(len(actions))])
    return pc.struct_field(actions.column(side), column)


def _end_of_millisecond(times: pa.ChunkedArray) -> pa.ChunkedArray:
    start = pc.floor_temporal(times, 1, "millisecond").cast(pa.int64())
    return pc.add(start, _MILLISECOND - 1).cast(times.type)
