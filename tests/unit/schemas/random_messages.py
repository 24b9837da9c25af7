"""Random messages of any Protobuf type, for Hypothesis: one strategy that follows the descriptor."""

from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import strategies as st

_INT32 = st.integers(-(2**31), 2**31 - 1)
_INT64 = st.integers(-(2**63), 2**63 - 1)
_UINT32 = st.integers(0, 2**32 - 1)
_UINT64 = st.integers(0, 2**64 - 1)
_SCALARS: dict[int, st.SearchStrategy[Any]] = {
    FieldDescriptor.TYPE_INT32: _INT32,
    FieldDescriptor.TYPE_SINT32: _INT32,
    FieldDescriptor.TYPE_SFIXED32: _INT32,
    FieldDescriptor.TYPE_INT64: _INT64,
    FieldDescriptor.TYPE_SINT64: _INT64,
    FieldDescriptor.TYPE_SFIXED64: _INT64,
    FieldDescriptor.TYPE_UINT32: _UINT32,
    FieldDescriptor.TYPE_FIXED32: _UINT32,
    FieldDescriptor.TYPE_UINT64: _UINT64,
    FieldDescriptor.TYPE_FIXED64: _UINT64,
    FieldDescriptor.TYPE_BOOL: st.booleans(),
    FieldDescriptor.TYPE_FLOAT: st.floats(width=32),
    FieldDescriptor.TYPE_DOUBLE: st.floats(),
    FieldDescriptor.TYPE_STRING: st.text(max_size=12),
    FieldDescriptor.TYPE_BYTES: st.binary(max_size=12),
}
_NANOS = st.integers(0, 999_999_999)
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799  # the years 1 to 9999
_LONGEST_DURATION = 315_576_000_000
_DEEPEST = 4
_MOST_ITEMS = 3


def messages(descriptor: Descriptor) -> st.SearchStrategy[Message]:
    """Messages of a type, with valid values of the types that mean a time or a day."""
    return _messages(descriptor, 0)


@st.composite
def _messages(draw: st.DrawFn, descriptor: Descriptor, depth: int) -> Message:
    message = GetMessageClass(descriptor)()
    if descriptor.full_name in _MEANINGFUL:
        values = draw(_MEANINGFUL[descriptor.full_name])
        for name, value in values.items():
            setattr(message, name, value)
        return message
    candidates = [field for field in descriptor.fields if depth < _DEEPEST or field.message_type is None]
    for field in draw(st.lists(st.sampled_from(candidates), unique=True)) if candidates else []:
        _fill(draw, message, field, depth)
    return message


def _fill(draw: st.DrawFn, message: Message, field: FieldDescriptor, depth: int) -> None:
    target = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        keys, values = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
        for key in draw(st.lists(_SCALARS[keys.type], max_size=_MOST_ITEMS, unique=True)):
            if values.message_type is None:
                target[key] = draw(_value(values))
            else:
                target[key].CopyFrom(draw(_messages(values.message_type, depth + 1)))
    elif field.is_repeated:
        item = _value(field) if field.message_type is None else _messages(field.message_type, depth + 1)
        target.extend(draw(st.lists(item, max_size=_MOST_ITEMS)))
    elif field.message_type is not None:
        target.CopyFrom(draw(_messages(field.message_type, depth + 1)))
        target.SetInParent()
    else:
        setattr(message, field.name, draw(_value(field)))


def _value(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    if field.enum_type is not None:
        return st.sampled_from([value.number for value in field.enum_type.values])
    return _SCALARS[field.type]


@st.composite
def _durations(draw: st.DrawFn) -> dict[str, int]:
    seconds, nanos = draw(st.integers(0, _LONGEST_DURATION)), draw(_NANOS)
    sign = draw(st.sampled_from([1, -1]))
    return {"seconds": sign * seconds, "nanos": sign * nanos}


_MEANINGFUL: dict[str, st.SearchStrategy[dict[str, int]]] = {
    "google.protobuf.Timestamp": st.fixed_dictionaries(
        {"seconds": st.integers(_FIRST_SECOND, _LAST_SECOND), "nanos": _NANOS}
    ),
    "google.protobuf.Duration": _durations(),
    "google.type.Date": st.dates().map(lambda day: {"year": day.year, "month": day.month, "day": day.day}),
    "google.type.TimeOfDay": st.fixed_dictionaries(
        {"hours": st.integers(0, 23), "minutes": st.integers(0, 59), "seconds": st.integers(0, 59), "nanos": _NANOS}
    ),
}
