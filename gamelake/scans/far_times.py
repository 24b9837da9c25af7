"""Times outside the range of a program: timestamps of Protobuf, and so of tables, exceed those of DuckDB and Python."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa

# Converts a time in microseconds since 1970.
Change = Callable[[int], Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def timestamps_in(array: pa.Array) -> Iterator[pa.Array]:
    """Yield the timestamp arrays in an array: itself, or those nested in its fields, elements and map values.

    Args:
        array: of any type. Map keys are ignored.

    Yields:
        Timestamp arrays in the order of the fields. If `array` is a slice, nested ones may have values outside of it.
    """
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
    """Return the type with int64 in place of each timestamp, nested ones included; map keys stay."""
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
    """Return a value with each of its times converted.

    Args:
        value: a Python value of the type `with_numbers(kind)`; its times are microseconds since 1970.
        kind: the original type, which has the timestamps.
        change: converts one time.
    """
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
    """Return a column's values in order as `to_pylist` does, except times outside the years 1 to 9999.

    These times become strings such as "253402300800000000 microseconds since 1970".

    Args:
        column: of any type; its timestamps are in microseconds.
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
