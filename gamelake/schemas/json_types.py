"""Protobuf messages as msgspec types for the strict decoding of JSON, with the contract's field names."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from google.protobuf.descriptor import Descriptor, FieldDescriptor

_TIMESTAMP = "google.protobuf.Timestamp"
# A time that is checked when it is decoded: RFC 3339, with an offset.
CHECKED_TIME = Annotated[datetime, msgspec.Meta(tz=True)]


_TIME = msgspec.json.Decoder(CHECKED_TIME)
_TIMES = msgspec.json.Decoder(list[CHECKED_TIME])
# msgspec rounds what is finer than a microsecond, and refuses the year 10000 of it; in Protobuf it is cut.
_FINER = re.compile(r"(\.\d{6})\d+")


def parse_time(text: object) -> datetime:
    """Return the time of a text by RFC 3339: the one grammar of the gateway and of files.

    Raises:
        ValueError: it is not a text, or not such a time with its offset.
    """
    try:
        return _TIME.decode(msgspec.json.encode(_cut(text) if isinstance(text, str) else text))
    except msgspec.MsgspecError:
        raise ValueError("not a time by RFC 3339") from None


def parse_times(texts: Sequence[str]) -> list[datetime]:
    """Return the times of many texts, in their order; it takes half the time of one by one.

    Raises:
        ValueError: one of them is not such a time.
    """
    try:
        # A text with a quotation mark gives more times than texts, or none.
        times = _TIMES.decode(_cut('["' + '","'.join(texts) + '"]')) if texts else []
    except (msgspec.MsgspecError, UnicodeEncodeError):
        times = []
    if len(times) != len(texts):
        raise ValueError("not times by RFC 3339")
    return times


def _cut(text: str) -> str:
    return _FINER.sub(r"\1", text)


class UnsupportedFieldError(Exception):
    """The contract has a field of a kind that these types don't support."""


def _whole(bits: int) -> Any:  # noqa: ANN401 # a type
    return Annotated[int, msgspec.Meta(ge=-(2 ** (bits - 1)), le=2 ** (bits - 1) - 1)]


_SCALARS: dict[int, tuple[Any, Any]] = {
    FieldDescriptor.TYPE_STRING: (str, ""),
    FieldDescriptor.TYPE_BOOL: (bool, False),
    FieldDescriptor.TYPE_DOUBLE: (float, 0.0),
    FieldDescriptor.TYPE_INT32: (_whole(32), 0),
    FieldDescriptor.TYPE_SINT32: (_whole(32), 0),
    FieldDescriptor.TYPE_SFIXED32: (_whole(32), 0),
    FieldDescriptor.TYPE_INT64: (_whole(64), 0),
    FieldDescriptor.TYPE_SINT64: (_whole(64), 0),
    FieldDescriptor.TYPE_SFIXED64: (_whole(64), 0),
}


@dataclass(frozen=True, slots=True)
class _Slot:
    """A field's type and default."""

    type: Any
    default: Any


def struct_of(message: Descriptor, time: Any = str) -> type[msgspec.Struct]:  # noqa: ANN401 # a type
    """Return the msgspec type of a message: enumerations are the names of their values, timestamps are of type `time`.

    Raises:
        UnsupportedFieldError: the message has a field of an unsupported kind.
    """
    slots = [(field.name, _slot(field, time)) for field in message.fields]
    return msgspec.defstruct(
        message.name,
        [(name, slot.type | None, slot.default) for name, slot in slots],
        forbid_unknown_fields=True,
        frozen=True,
        omit_defaults=True,
        gc=False,
    )


def _slot(field: FieldDescriptor, time: Any) -> _Slot:  # noqa: ANN401 # a type
    inner = field.message_type
    if field.is_repeated:
        return _several(field)
    if inner is not None:
        return _Slot(time if inner.full_name == _TIMESTAMP else struct_of(inner, time), None)
    if field.enum_type is not None:
        names = tuple(value.name for value in field.enum_type.values)
        return _Slot(Literal[names], None if field.has_presence else names[0])
    if field.type not in _SCALARS:
        raise UnsupportedFieldError(field.full_name)
    kind, default = _SCALARS[field.type]
    return _Slot(kind, None if field.has_presence else default)


def _several(field: FieldDescriptor) -> _Slot:
    inner = field.message_type
    text = FieldDescriptor.TYPE_STRING
    if inner is None and field.type == text:
        return _Slot(list[str], None)
    if inner is not None and inner.GetOptions().map_entry and all(part.type == text for part in inner.fields):
        return _Slot(dict[str, str], None)
    raise UnsupportedFieldError(field.full_name)
