"""Arrow columns in the types that Delta tables keep."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from deltalake import Schema

from gamelake.delta.columns import MICROSECONDS_UTC, UINT64_AS_DECIMAL, as_delta, delta_type


@pytest.mark.parametrize(
    ("arrow", "kept"),
    [
        (pa.int8(), pa.int64()),
        (pa.int32(), pa.int64()),
        (pa.uint32(), pa.int64()),
        (pa.uint64(), UINT64_AS_DECIMAL),
        (pa.float32(), pa.float64()),
        (pa.timestamp("ns", "Europe/Berlin"), MICROSECONDS_UTC),
        (pa.duration("ns"), pa.int64()),
        (pa.time32("s"), pa.int64()),
        (pa.time64("ns"), pa.int64()),
        (pa.date32(), pa.date32()),
        (pa.string(), pa.string()),
        (pa.binary(), pa.binary()),
        (pa.bool_(), pa.bool_()),
        (pa.list_(pa.field("item", pa.int32(), nullable=False)), pa.list_(pa.field("element", pa.int64()))),
        (pa.map_(pa.int32(), pa.float32()), pa.map_(pa.int64(), pa.float64())),
        (pa.struct([pa.field("a", pa.uint64(), nullable=False)]), pa.struct([pa.field("a", UINT64_AS_DECIMAL)])),
        (pa.struct([("a", pa.int8()), ("none", pa.struct([]))]), pa.struct([("a", pa.int64())])),
    ],
)
def test_each_type_has_one_delta_type(arrow: pa.DataType, kept: pa.DataType) -> None:
    assert delta_type(arrow) == kept
    assert delta_type(kept) == kept
    assert pa.schema(Schema.from_arrow(pa.schema([pa.field("column", kept)]))).names == ["column"]


_NESTED = pa.struct([("inner", pa.struct([("n", pa.float32())])), ("empty", pa.struct([]))])
_BATCH = pa.RecordBatch.from_arrays(
    [
        pa.array([2**64 - 1, None], pa.uint64()),
        pa.array([timedelta(microseconds=5), None], pa.duration("us")),
        pa.array([time(0, 0, 1), None], pa.time32("s")),
        pa.array([[{"n": 1}, None], None], pa.list_(pa.struct([("n", pa.int32())]))),
        pa.array([[(1, {"n": 2})], None], pa.map_(pa.int32(), pa.struct([("n", pa.uint64())]))),
        pa.array([{"inner": {"n": 1.5}, "empty": {}}, None], _NESTED),
        pa.array([datetime(2026, 1, 1, tzinfo=UTC), None], pa.timestamp("s", "UTC")),
        pa.array([date(2026, 1, 1), None]),
    ],
    names=["large", "duration", "time", "items", "named", "nested", "moment", "day"],
)  # fmt: skip


def test_values_and_nulls_survive_at_every_depth() -> None:
    assert as_delta(_BATCH).to_pylist() == [
        {
            "large": Decimal(2**64 - 1),
            "duration": 5,
            "time": 1_000_000,
            "items": [{"n": 1}, None],
            "named": [(1, {"n": Decimal(2)})],
            "nested": {"inner": {"n": 1.5}},
            "moment": datetime(2026, 1, 1, tzinfo=UTC),
            "day": date(2026, 1, 1),
        },
        dict.fromkeys(_BATCH.schema.names),
    ]


def test_columns_of_delta_types_stay_as_they_are() -> None:
    once = as_delta(_BATCH)

    assert as_delta(once).equals(once)


@pytest.mark.parametrize("hollow", [pa.struct([]), pa.list_(pa.struct([])), pa.map_(pa.string(), pa.struct([]))])
def test_a_column_that_parquet_can_not_keep_is_left_out(hollow: pa.DataType) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.nulls(1, hollow)], names=["number", "hollow"])

    assert as_delta(batch).schema.names == ["number"]
