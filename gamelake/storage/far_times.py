"""Times beyond the years of a program: Protobuf's timestamps, and so the tables', have more than DuckDB and Python."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa

# A time as microseconds since 1970, and what it is to become.
Change = Callable[[int], Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def timestamps_in(array: pa.Array) -> Iterator[pa.Array]:
    """The timestamps in an array, also nested ones, with those around it if it is a slice."""
    kind = array.type
    if pa.types.is_timestamp(kind):
        yield array
    elif pa.types.is_struct(kind):
        for place in range(kind.num_fields):
            yield from timestamps_in(array.field(place))
    elif pa.types.is_map(kind):
        yield from timestamps_in(array.items)
    elif pa.types.is_list(kind):
        yield from timestamps_in(array.values)


def with_numbers(kind: pa.DataType) -> pa.DataType:
    """A type with int64 for timestamps, also nested ones."""
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(with_numbers(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, with_numbers(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(with_numbers(kind.value_type)))
    return kind


def with_changed_times(value: Any, kind: pa.DataType, change: Change) -> Any:  # noqa: ANN401 # as pyarrow gives it
    """A value of a type with numbers for timestamps (`kind` has these still), with each of them changed."""
    if value is None:
        return None
    if pa.types.is_timestamp(kind):
        return change(value)
    if pa.types.is_struct(kind):
        return {field.name: with_changed_times(value[field.name], field.type, change) for field in kind}
    if pa.types.is_map(kind):
        return [(key, with_changed_times(item, kind.item_type, change)) for key, item in value]
    if pa.types.is_list(kind):
        return [with_changed_times(item, kind.value_type, change) for item in value]
    return value


def python_values(column: pa.ChunkedArray) -> list[Any]:
    """A column's values as `to_pylist` gives them, but a time beyond the years 1 to 9999 as a text with its number.

    Args:
        column: any type; timestamps in microseconds.
    """
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        has_zone = any(leaf.type.tz for chunk in column.chunks for leaf in timestamps_in(chunk))
        change = partial(_moment, epoch=_EPOCH if has_zone else _EPOCH.replace(tzinfo=None))
        numbers = column.cast(with_numbers(column.type)).to_pylist()
        return [with_changed_times(value, column.type, change) for value in numbers]
    return values


def _moment(microseconds: int, epoch: datetime) -> datetime | str:
    try:
        return epoch + timedelta(microseconds=microseconds)
    except OverflowError:
        return f"{microseconds} microseconds since 1970"
