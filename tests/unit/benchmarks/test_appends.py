"""Appends of consumers without Spark: rows, offsets of the same commit, and statistics."""

import json
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from benchmarks.delta_rs_consumer import append_rows
from benchmarks.duckdb_consumer import append_unique_rows, statistics
from benchmarks.one_table import Append, EventRows, stored_offsets

SCHEMA = pa.schema(
    [
        pa.field("event_time", pa.timestamp("us", "UTC")),
        pa.field("amount", pa.float64()),
        pa.field("kafka_partition", pa.int64()),
        pa.field("kafka_offset", pa.int64()),
        pa.field("event_id", pa.string()),
        pa.field("attributes", pa.map_(pa.string(), pa.string())),
        pa.field("event_date", pa.date32()),
    ]
)
TOPIC = "events"


def some_rows(*event_ids: str, first: int = 0, partition: int = 0) -> EventRows:
    """One event per id, at consecutive offsets, on two days in turn."""
    days = [1 + number % 2 for number in range(len(event_ids))]
    rows = pa.Table.from_pydict(
        {
            "event_time": [datetime(2026, 1, day, 12, tzinfo=UTC) for day in days],
            "amount": [None] * len(event_ids),
            "kafka_partition": [partition] * len(event_ids),
            "kafka_offset": list(range(first, first + len(event_ids))),
            "event_id": list(event_ids),
            "attributes": [[("device", "phone")]] * len(event_ids),
            "event_date": [date(2026, 1, day) for day in days],
        },
        schema=SCHEMA,
    )
    return EventRows(rows, TOPIC, {partition: first + len(event_ids)})


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    """An empty table, in a folder whose name has a space."""
    return DeltaTable.create(str(tmp_path / "one table"), SCHEMA, partition_by=["event_date"])


def ids_in(table: DeltaTable) -> list[str]:
    return sorted(DeltaTable(table.table_uri).to_pyarrow_table()["event_id"].to_pylist())


@pytest.mark.parametrize("append", [append_rows, append_unique_rows])
def test_offsets_are_stored_by_partition_with_the_rows(table: DeltaTable, append: Append) -> None:
    assert stored_offsets(table, TOPIC) == {}

    append(table, some_rows("a", "b", "c"))
    append(table, some_rows("d", first=3))
    append(table, some_rows("e", first=9, partition=2))

    fresh = DeltaTable(table.table_uri)
    assert ids_in(table) == ["a", "b", "c", "d", "e"]
    assert stored_offsets(fresh, TOPIC) == {0: 4, 2: 10}
    assert stored_offsets(fresh, "another topic") == {}
    assert fresh.to_pyarrow_table().schema.field("attributes").type == pa.map_(pa.string(), pa.string())


def test_duckdb_keeps_the_first_of_the_events_with_one_id(table: DeltaTable) -> None:
    append_unique_rows(table, some_rows("a", "b", "a", "b", "a"))

    rows = DeltaTable(table.table_uri).to_pyarrow_table().sort_by("event_id")
    assert rows["event_id"].to_pylist() == ["a", "b"]
    assert rows["kafka_offset"].to_pylist() == [0, 1]


def test_duckdbs_files_have_statistics(table: DeltaTable) -> None:
    append_unique_rows(table, some_rows("a", "b", "c"))

    actions = pa.table(DeltaTable(table.table_uri).get_add_actions(flatten=True)).sort_by("num_records").to_pylist()
    first, second = actions
    assert (first["num_records"], second["num_records"]) == (1, 2)
    assert first["min.event_time"] == first["max.event_time"] == datetime(2026, 1, 2, 12, tzinfo=UTC)
    assert (second["min.kafka_offset"], second["max.kafka_offset"]) == (0, 2)
    assert second["null_count.amount"] == 2


def test_columns_without_bounds_have_none_in_the_statistics() -> None:
    found = {'"event_id"': {"null_count": "0", "min": "a", "max": "b"}, '"amount"': {"null_count": "3"}}

    assert json.loads(statistics(3, found, SCHEMA)) == {
        "numRecords": 3,
        "minValues": {"event_id": "a"},
        "maxValues": {"event_id": "b"},
        "nullCount": {"event_id": 0, "amount": 3},
    }
