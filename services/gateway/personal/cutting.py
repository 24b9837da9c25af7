"""What is cut out of events: the values of the personal fields, in the order of the contract's paths."""

from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from gamelake.errors import ContractError
from services.gateway.personal.fields import FieldPath

# A text as it is, a message as its bytes; each is empty where the event has nothing.
CutOut: TypeAlias = tuple[str | bytes, ...]


class Cutter:
    """Knows the personal fields that go to the vault."""

    def __init__(self, event: Descriptor, paths: Sequence[FieldPath]) -> None:
        self._event = GetMessageClass(event)
        self._paths = paths
        inner = [_field(event, path).message_type for path in paths]
        self._classes = [None if each is None else GetMessageClass(each) for each in inner]
        self.nothing: CutOut = tuple("" if each is None else b"" for each in inner)

    def cut(self, event: Message) -> CutOut:
        """Take the personal fields out of an event."""
        return tuple(_cut(event, path, empty) for path, empty in zip(self._paths, self.nothing, strict=True))

    def look_at(self, events: pa.RecordBatch) -> list[CutOut]:
        """What would be cut out of each event."""
        columns = [
            _texts(_column(events, path)) if inner is None else _messages(_column(events, path), inner)
            for path, inner in zip(self._paths, self._classes, strict=True)
        ]
        return list(zip(*columns, strict=True)) if columns else [()] * events.num_rows

    def as_event(self, cut_out: CutOut) -> bytes:
        """An event that has nothing but this."""
        event = self._event()
        for path, value in zip(self._paths, cut_out, strict=True):
            if value:
                _put(event, path, value)
        return event.SerializeToString(deterministic=True)


def _field(event: Descriptor, path: FieldPath) -> FieldDescriptor:
    """The field that a path leads to.

    Raises:
        ContractError: it is neither a text nor a message.
    """
    for parent in path.parents:
        event = event.fields_by_name[parent].message_type  # type: ignore[assignment] # it has fields
    field = event.fields_by_name[path.name]
    if field.message_type is None and field.type != FieldDescriptor.TYPE_STRING:
        raise ContractError(f"{field.full_name} is neither a string nor a message, and the vault takes no other")
    return field


def _cut(event: Message, path: FieldPath, empty: str | bytes) -> str | bytes:
    holder = path.holder(event)
    if holder is None:
        return empty
    value = getattr(holder, path.name)
    if isinstance(value, Message):
        if not holder.HasField(path.name):
            return empty
        value = value.SerializeToString(deterministic=True)
    holder.ClearField(path.name)
    return value  # type: ignore[no-any-return] # the contract's messages are made at run time


def _column(events: pa.RecordBatch, path: FieldPath) -> pa.Array:
    names = (*path.parents, path.name)
    column = events.column(names[0])
    for name in names[1:]:
        column = column.field(name)
    return column


def _texts(column: pa.StringArray) -> list[str]:
    # Null where the message around it isn't there.
    texts: list[str] = (column.fill_null("") if column.null_count else column).to_pylist()
    return texts


def _messages(column: pa.StructArray, message: type[Message]) -> list[bytes]:
    found = [b""] * len(column)
    if column.null_count < len(column):
        for row, value in enumerate(column.to_pylist()):
            if value is not None:
                found[row] = message(**value).SerializeToString(deterministic=True)
    return found


def _put(event: Message, path: FieldPath, value: str | bytes) -> None:
    holder = event
    for parent in path.parents:
        holder = getattr(holder, parent)
    if isinstance(value, bytes):
        getattr(holder, path.name).MergeFromString(value)
    else:
        setattr(holder, path.name, value)
