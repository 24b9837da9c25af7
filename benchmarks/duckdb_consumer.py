"""The approach without Spark that lets DuckDB remove duplicates within an append, and write the Parquet files.

delta-rs commits the files, with the statistics that DuckDB reports of them.
"""

import json
import time
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from benchmarks.one_table import EventRows, consume_into_one_table
from benchmarks.workload import ApproachResult, Workload
from gamelake.layers.silver import EVENT_DATE

# The first of the events with one id stays. Only ids and coordinates are sorted, not whole rows. A COPY for each
# day takes half the CPU time of one COPY with PARTITION_BY, which copies all rows once more.
_COPY = """
COPY (
  SELECT * EXCLUDE (event_date) FROM events ANTI JOIN (
    SELECT kafka_partition, kafka_offset FROM events
    QUALIFY row_number() OVER (PARTITION BY event_id ORDER BY kafka_partition, kafka_offset) > 1
  ) USING (kafka_partition, kafka_offset)
  WHERE event_date = $day
) TO $file (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, RETURN_STATS)
"""

# DuckDB reports bounds as text; how a bound becomes a value of Delta's JSON, by the column's type.
Bound: TypeAlias = str | int | float
_BOUNDS: Mapping[str, Callable[[str], Bound]] = {
    "string": str,
    "int32": int,
    "int64": int,
    "double": float,
    "timestamp[us, tz=UTC]": lambda text: datetime.fromisoformat(text).astimezone(UTC).isoformat(),
}


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    """The connection of this process."""
    return duckdb.connect()


def consume_with_duckdb(workload: Workload) -> ApproachResult:
    """Consume the whole topic into one table that DuckDB writes; an event that comes twice in an append stays once."""
    return consume_into_one_table(workload, append_unique_rows)


def append_unique_rows(table: DeltaTable, rows: EventRows) -> None:
    """Append the first row of each event id, as files of DuckDB: one for each day."""
    folder = Path(unquote(urlsplit(table.table_uri).path))
    connection = _connection()
    connection.register("events", rows.rows)
    actions: list[AddAction | RemoveAction] = [
        _written(connection, folder, day, rows.rows.schema) for day in pc.unique(rows.rows[EVENT_DATE]).to_pylist()
    ]
    connection.unregister("events")
    table.create_write_transaction(
        actions, "append", rows.rows.schema, [EVENT_DATE], commit_properties=rows.commit_properties
    )
    # Against an older version, delta-rs would take the transactions of the last commit for another program's.
    table.update_incremental()


def _written(connection: duckdb.DuckDBPyConnection, folder: Path, day: date, schema: pa.Schema) -> AddAction:
    """Write the rows of a day, of the view `events`, as a file of the table in a folder."""
    path = f"{EVENT_DATE}={day}/part-{uuid.uuid4()}.parquet"
    (folder / path).parent.mkdir(exist_ok=True)
    _, count, size, _, columns, *_ = connection.execute(_COPY, {"day": day, "file": str(folder / path)}).fetchall()[0]
    return AddAction(
        path=path,
        size=size,
        partition_values={EVENT_DATE: str(day)},
        modification_time=time.time_ns() // 1_000_000,
        data_change=True,
        stats=statistics(count, columns, schema),
    )


def statistics(count: int, columns: Mapping[str, Mapping[str, str]], schema: pa.Schema) -> str:
    """Delta's statistics of a file, as JSON: of its top-level columns with a type in `_BOUNDS`.

    Args:
        count: of rows.
        columns: DuckDB's statistics by quoted column name; without min and max if a column has only nulls.
        schema: the table's columns.
    """
    least: dict[str, Bound] = {}
    greatest: dict[str, Bound] = {}
    nulls: dict[str, int] = {}
    for field in schema:
        found, bound = columns.get(f'"{field.name}"'), _BOUNDS.get(str(field.type))
        if found is None or bound is None:
            continue
        nulls[field.name] = int(found["null_count"])
        if "min" in found and "max" in found:
            least[field.name], greatest[field.name] = bound(found["min"]), bound(found["max"])
    return json.dumps({"numRecords": count, "minValues": least, "maxValues": greatest, "nullCount": nulls})
