"""Data files: what is read back is what was written, and statistics never promise what is not so."""

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from gamelake.delta.columns import MICROSECONDS_UTC
from gamelake.delta.data_files import encode_parquet, new_file_name
from tests.unit.delta.random_tables import tables
from tests.unit.properties import examples

Statistics: TypeAlias = dict[str, Any]
_ROW_GROUP = 131_072


def _statistics(rows: pa.Table) -> Statistics:
    result: Statistics = json.loads(encode_parquet(rows, ())[1])
    return result


def _moments(*years: int) -> pa.Array:
    return pa.array([datetime(year, 1, 2, tzinfo=UTC) for year in years], MICROSECONDS_UTC)


def _leaves(path: tuple[str, ...], column: pa.ChunkedArray) -> Iterator[tuple[tuple[str, ...], pa.ChunkedArray]]:
    """The columns inside structs, null where a struct around them is."""
    if pa.types.is_struct(column.type):
        for field in column.type:
            yield from _leaves((*path, field.name), pc.struct_field(column, field.name))
    else:
        yield path, column


def _at(tree: Statistics, path: tuple[str, ...]) -> object:
    value: object = tree
    for step in path:
        if not isinstance(value, dict) or step not in value:
            return None
        value = value[step]
    return value


def _is_list(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_list(arrow) or pa.types.is_map(arrow))


def _values(column: pa.ChunkedArray) -> list[object]:
    """Python values; times as their numbers, because Python has none before the year 1."""
    numbers = {MICROSECONDS_UTC: pa.int64(), pa.date32(): pa.int32()}
    values: list[object] = column.cast(numbers.get(column.type, column.type)).to_pylist()
    return values


@examples(80)
@given(tables())
def test_a_table_reads_back_as_it_was_written(rows: pa.Table) -> None:
    content, _ = encode_parquet(rows, {"c0"})

    back = pq.read_table(pa.BufferReader(content)).cast(rows.schema)

    for name in rows.schema.names:
        for (_, written), (_, read) in zip(_leaves((name,), rows[name]), _leaves((name,), back[name]), strict=True):
            assert repr(_values(read)) == repr(_values(written))  # as text: NaN is not equal to itself


@examples(120)
@given(tables())
def test_null_counts_are_exact_and_bounds_hold_every_value(rows: pa.Table) -> None:
    found = _statistics(rows)

    assert found["numRecords"] == len(rows)
    for name in rows.schema.names:
        for path, column in _leaves((name,), rows[name]):
            bounds = _at(found["minValues"], path), _at(found["maxValues"], path)
            if not _is_list(column.type) or len(path) == 1:
                assert _at(found["nullCount"], path) == column.null_count, path
            if None not in bounds:
                _assert_within(column.drop_null(), pa.array(bounds))
            if pa.types.is_int64(column.type):
                assert bounds == tuple(pc.min_max(column).as_py().values())


def _assert_within(values: pa.ChunkedArray, bounds: pa.Array) -> None:
    if pa.types.is_timestamp(values.type) or pa.types.is_date(values.type):
        bounds = bounds.cast(values.type)
    least, greatest = _values(pa.chunked_array([bounds]))
    for value in _values(values):
        assert least <= value <= greatest  # type: ignore[operator] # as many types as columns can have


@pytest.mark.parametrize(
    ("values", "least", "greatest"),
    [
        (["b", "a"], "a", "b"),
        (["a" * 32], "a" * 32, "a" * 32),
        (["a" * 40], "a" * 32, "a" * 32 + "\U0010ffff"),
        (["é" * 40], "é" * 32, "é" * 32 + "\U0010ffff"),
    ],
)
def test_long_strings_are_bounded_by_their_prefix(values: list[str], least: str, greatest: str) -> None:
    found = _statistics(pa.table({"text": values}))

    assert (found["minValues"], found["maxValues"]) == ({"text": least}, {"text": greatest})


def test_a_string_without_a_short_upper_bound_is_its_own_bound() -> None:
    # A column without bounds in a file with bounds of other columns loses its rows in delta-rs' data set.
    text = "a" * 32 + "\U0010ffff" * 2
    found = _statistics(pa.table({"text": [text]}))

    assert (found["minValues"], found["maxValues"]) == ({"text": "a" * 32}, {"text": text})


def test_a_row_group_without_bounds_leaves_the_column_without_them() -> None:
    found = _statistics(pa.table({"text": ["b"] * _ROW_GROUP + ["z" * 5_000]}))

    assert (found["minValues"], found["maxValues"], found["nullCount"]) == ({}, {}, {"text": 0})


def test_a_row_group_of_nulls_takes_no_bounds_away() -> None:
    found = _statistics(pa.table({"text": pa.array(["b"] * _ROW_GROUP + [None])}))

    assert (found["minValues"], found["nullCount"]) == ({"text": "b"}, {"text": 1})


def test_years_have_four_digits() -> None:
    found = _statistics(pa.table({"moment": _moments(1, 900)}))

    assert found["minValues"] == {"moment": "0001-01-02T00:00:00.000000Z"}
    assert found["maxValues"] == {"moment": "0900-01-02T00:00:00.000000Z"}


@pytest.mark.parametrize("arrow", [MICROSECONDS_UTC, pa.date32()])
@pytest.mark.parametrize("extreme", [-(2**31), 2**31 - 1])
def test_times_beyond_the_calendar_have_no_bounds(arrow: pa.DataType, extreme: int) -> None:
    as_number = pa.date32() if pa.types.is_date(arrow) else pa.int64()
    number = extreme if as_number == pa.date32() else extreme * 2**32
    width = pa.int32() if as_number == pa.date32() else pa.int64()
    rows = pa.table({"time": pa.array([number, 0], width).cast(arrow)})

    content, statistics = encode_parquet(rows, ())

    assert json.loads(statistics)["minValues"] == {}
    assert pq.read_table(pa.BufferReader(content))["time"].cast(width).to_pylist() == [number, 0]


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_does_not_have_leave_a_column_without_bounds(odd: float) -> None:
    found = _statistics(pa.table({"amount": [1.0, odd], "nested": [{"amount": odd}, {"amount": 1.0}]}))

    assert (found["minValues"], found["maxValues"]) == ({}, {})
    assert found["nullCount"] == {"amount": 0, "nested": {"amount": 0}}


def test_a_column_of_nulls_has_a_null_count_only() -> None:
    found = _statistics(pa.table({"amount": pa.nulls(3, pa.float64()), "items": pa.nulls(3, pa.list_(pa.int64()))}))

    assert (found["minValues"], found["nullCount"]) == ({}, {"amount": 3, "items": 3})


def test_statistics_are_kept_for_the_first_32_leaf_columns() -> None:
    # A struct counts by its leaves, a list or a map once.
    columns = {
        "items": pa.array([[1, 2]]),
        "nested": pa.array([{"a": 1, "b": {"c": 2}}]),
        "tags": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
    }
    columns |= {f"c{number}": pa.array([number]) for number in range(30)}

    found = _statistics(pa.table(columns))

    indexed = [f"c{number}" for number in range(28)]
    assert list(found["minValues"]) == list(found["maxValues"]) == ["nested", *indexed]
    assert found["minValues"]["nested"] == {"a": 1, "b": {"c": 2}}
    assert set(found["nullCount"]) == {"items", "nested", "tags", *indexed}


@pytest.mark.parametrize("name", ["list", "key_value", "element", "a.b"])
def test_a_struct_with_a_field_that_is_named_like_a_part_of_a_path_has_all_its_statistics(name: str) -> None:
    inner = {"count": 5, "total": 6}
    found = _statistics(pa.table({"inventory": [{name: inner, "page": 2}], name: [1], "score": [9]}))

    bounds = {"inventory": {name: inner, "page": 2}, name: 1, "score": 9}
    assert (found["minValues"], found["maxValues"]) == (bounds, bounds)
    nulls = {"inventory": {name: {"count": 0, "total": 0}, "page": 0}, name: 0, "score": 0}
    assert found["nullCount"] == nulls


def test_a_struct_has_statistics_of_those_leaves_that_are_among_the_first_32() -> None:
    columns = {f"c{number}": pa.array([number]) for number in range(31)}
    columns |= {"nested": pa.array([{"a": 1, "b": 2}]), "items": pa.array([[1]])}

    found = _statistics(pa.table(columns))

    assert found["minValues"]["nested"] == found["maxValues"]["nested"] == {"a": 1}
    assert found["nullCount"]["nested"] == {"a": 0}
    assert "items" not in found["nullCount"]


def test_the_statistics_of_a_wide_file_are_as_long_as_those_of_32_columns() -> None:
    of_32, of_1000 = (
        len(encode_parquet(pa.table({f"column_{number:04d}": ["x" * 40] for number in range(count)}), ())[1])
        for count in (32, 1_000)
    )

    assert of_1000 == of_32


def test_two_files_never_have_the_same_name() -> None:
    assert len({new_file_name("event_date=2026-01-01") for _ in range(100)}) == 100
