"""The personal fields of the submitted event, by the option on them in the contract, and how they are taken out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from gamelake.model.errors import ContractError

_OPTION = "gamelake.submitted.treatment"
_OPTIONS = "google.protobuf.FieldOptions"


class Treatment(IntEnum):
    """What the contract says of a field; the numbers are the contract's."""

    NONE = 0
    PSEUDONYM = 1
    VAULT = 2


@dataclass(frozen=True, slots=True)
class FieldPath:
    """A field inside an event, by the names on the way to it."""

    parents: tuple[str, ...]
    name: str

    def __str__(self) -> str:
        """The names, with dots between."""
        return ".".join((*self.parents, self.name))

    def holder(self, event: Message) -> Message | None:
        """The message that has the field, None if it is not there."""
        for parent in self.parents:
            if not event.HasField(parent):
                return None
            event = getattr(event, parent)
        return event


@dataclass(frozen=True, slots=True)
class PersonalFields:
    """The personal fields of an event: the player's own name, and what goes to the vault."""

    player: str
    vault: tuple[FieldPath, ...]


def personal_fields(event: Descriptor) -> PersonalFields:
    """Find the fields that the contract marks.

    Raises:
        ContractError: not exactly one field of the event itself is the player's name.
    """
    marked = list(_marked(event, ()))
    players = [path for path, treatment in marked if treatment is Treatment.PSEUDONYM]
    if len(players) != 1 or players[0].parents:
        raise ContractError(
            f"{event.full_name} must mark one field of its own, and no more, as TREATMENT_PSEUDONYM; "
            f"it marks {[str(path) for path in players]}"
        )
    vault = tuple(path for path, treatment in marked if treatment is Treatment.VAULT)
    return PersonalFields(players[0].name, vault)


def _marked(message: Descriptor, parents: tuple[str, ...]) -> Iterator[tuple[FieldPath, Treatment]]:
    """The marked fields, the outermost where one stands in another; those in lists can't be marked."""
    for field in message.fields:
        treatment = treatment_of(field)
        if treatment is not Treatment.NONE:
            yield FieldPath(parents, field.name), treatment
        elif field.message_type is not None and not field.is_repeated:
            yield from _marked(field.message_type, (*parents, field.name))


def treatment_of(field: FieldDescriptor) -> Treatment:
    """What the contract says of one field of its messages."""
    pool = field.containing_type.file.pool  # type: ignore[union-attr] # only extensions have none
    # The pool of a compiled contract has classes of its own: to the default ones the option is an unknown field.
    options = GetMessageClass(pool.FindMessageTypeByName(_OPTIONS))
    read = options.FromString(field.GetOptions().SerializeToString())
    return Treatment(read.Extensions[pool.FindExtensionByName(_OPTION)])  # type: ignore[index] # the stubs know one pool


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
