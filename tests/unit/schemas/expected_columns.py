"""What the columns of a message must hold, read with the protobuf package, which shares no code with the decoder."""

import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

# A column's value, as pyarrow or the protobuf package gives it; likewise a field's descriptor, which has two classes.
Value: TypeAlias = Any
Field: TypeAlias = Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WRAPPERS = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_UINT64 = (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64)


def expected_columns(message: Message) -> dict[str, Value]:
    """Column values by name; a message inside one of its own type is its bytes."""
    return _fields(message, (message.DESCRIPTOR.full_name,))


def _fields(message: Message, path: tuple[str, ...]) -> dict[str, Value]:
    fields = [field for field in message.DESCRIPTOR.fields if has_columns(field)]
    return {field.name: _field(message, field, path) for field in fields}


def has_columns(field: Field) -> bool:
    """Return True if a field gets a column: messages without fields, also in a list or map, have nothing to keep."""
    if field.message_type is None:
        return True
    if field.message_type.GetOptions().map_entry:
        return has_columns(field.message_type.fields_by_name["value"])
    return bool(field.message_type.fields)


def _field(message: Message, field: Field, path: tuple[str, ...]) -> Value:
    value = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        values = field.message_type.fields_by_name["value"]
        return {key: _value(values, item, path) for key, item in value.items()}
    if field.is_repeated:
        return [_value(field, item, path) for item in value]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _value(field, value, path)


def _value(field: Field, value: Value, path: tuple[str, ...]) -> Value:
    if field.message_type is not None:
        return _message(field.message_type, value, path)
    if field.enum_type is not None:
        named = field.enum_type.values_by_number.get(value)
        return str(value) if named is None else named.name
    return Decimal(value) if field.type in _UINT64 else value


def _message(descriptor: Descriptor, value: Value, path: tuple[str, ...]) -> Value:
    name = descriptor.full_name
    if name in _MEANINGS:
        return _MEANINGS[name](value)
    if name in _WRAPPERS:
        return _value(descriptor.fields_by_name["value"], value.value, path)
    return value if name in path else _fields(value, (*path, name))


def _time_of_day(value: Value) -> int:
    return int((value.hours * 3_600 + value.minutes * 60 + value.seconds) * 1_000_000 + value.nanos // 1_000)


_MEANINGS: dict[str, Callable[[Value], Value]] = {
    "google.protobuf.Timestamp": lambda value: (
        _EPOCH + timedelta(microseconds=value.seconds * 1_000_000 + value.nanos // 1_000)
    ),
    "google.protobuf.Duration": lambda value: value.seconds * 1_000_000 + math.trunc(value.nanos / 1_000),
    "google.type.Date": lambda value: date(value.year, value.month, value.day),
    "google.type.TimeOfDay": _time_of_day,
}


def same(actual: Value, expected: Value) -> bool:
    """Return True if a column's value is as expected: maps in any order, NaN equal to itself, bytes of a message."""
    if isinstance(expected, Message):
        return isinstance(actual, bytes) and type(expected).FromString(actual) == expected
    if isinstance(expected, Mapping):
        actual = actual if isinstance(actual, Mapping) else dict(actual or [])
        return actual.keys() == expected.keys() and all(same(actual[name], item) for name, item in expected.items())
    if isinstance(expected, list):
        actual = actual or []
        return len(actual) == len(expected) and all(map(same, actual, expected))
    if isinstance(expected, float) and math.isnan(expected):
        return isinstance(actual, float) and math.isnan(actual)
    return type(actual) is type(expected) and bool(actual == expected)
