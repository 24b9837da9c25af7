"""The personal fields of the submitted event, by the option on them in the contract, and how they are extracted."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from gamelake.contract.games import TextLengths
from gamelake.model.errors import ContractError
from gamelake.privacy.vault.migrations import MOST_SEALED_BYTES

_OPTION = "gamelake.submitted.treatment"
_OPTIONS = "google.protobuf.FieldOptions"
# The tag and length of a field, or the tag and value of a number; the nonce and tag of AES-GCM.
_FIELD_BYTES, _SEALING_BYTES = 16, 28

# The values of an event's personal fields, in the order of the contract's paths: a string as it is, a message in its
# serialized form; empty if the event has none.
PersonalValues: TypeAlias = tuple[str | bytes, ...]


class Treatment(IntEnum):
    """The treatment that the contract sets for a field; the numbers are the contract's."""

    NONE = 0
    PSEUDONYM = 1
    VAULT = 2


@dataclass(frozen=True, slots=True)
class FieldPath:
    """A field inside an event, by the names of the fields that lead to it."""

    parents: tuple[str, ...]
    name: str

    def __str__(self) -> str:
        """The names, separated by dots."""
        return ".".join((*self.parents, self.name))

    def holder(self, event: Message) -> Message | None:
        """Return the message that has the field; None if the event has no such message."""
        for parent in self.parents:
            if not event.HasField(parent):
                return None
            event = getattr(event, parent)
        return event


@dataclass(frozen=True, slots=True)
class PersonalFields:
    """The personal fields of an event: the player's name, and those that go to the vault."""

    player: str
    vault: tuple[FieldPath, ...]


def personal_fields(event: Descriptor) -> PersonalFields:
    """Find the fields that the contract marks.

    Raises:
        ContractError: the player's name is not exactly one field of the event itself.
    """
    marked = list(_marked(event, ()))
    players = [path for path, treatment in marked if treatment is Treatment.PSEUDONYM]
    if len(players) != 1 or players[0].parents:
        raise ContractError(
            f"{event.full_name} must mark exactly one field of its own as TREATMENT_PSEUDONYM; "
            f"it marks {[str(path) for path in players]}"
        )
    vault = tuple(path for path, treatment in marked if treatment is Treatment.VAULT)
    return PersonalFields(players[0].name, vault)


def check_vault_takes(event: Descriptor, personal: PersonalFields, lengths: TextLengths) -> None:
    """Check that the vault takes the personal data of each event whose texts are as long as the contract allows.

    Raises:
        ContractError: it does not.
    """
    most = sum(_most_bytes(_field(event, path), str(path), lengths) for path in personal.vault)
    if most > MOST_SEALED_BYTES - _SEALING_BYTES:
        raise ContractError(
            f"the texts that {event.full_name} marks for the vault may have {most} bytes together, and the vault takes "
            f"{MOST_SEALED_BYTES - _SEALING_BYTES}: lower `lengths` in contracts/games.yaml"
        )


def _most_bytes(field: FieldDescriptor, path: str, lengths: TextLengths) -> int:
    """Return the most bytes that a field takes in a serialized message."""
    if field.is_repeated:
        raise ContractError(f"{path} is marked for the vault, which takes no lists: their number has no limit")
    if field.message_type is not None:
        inner = field.message_type.fields
        return _FIELD_BYTES + sum(_most_bytes(each, f"{path}.{each.name}", lengths) for each in inner)
    is_text = field.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)
    return _FIELD_BYTES + (lengths.of(path) if is_text else 0)


def _marked(message: Descriptor, parents: tuple[str, ...]) -> Iterator[tuple[FieldPath, Treatment]]:
    """The marked fields, the outermost of nested ones; fields in lists can't be marked."""
    for field in message.fields:
        treatment = treatment_of(field)
        if treatment is not Treatment.NONE:
            yield FieldPath(parents, field.name), treatment
        elif field.message_type is not None and not field.is_repeated:
            yield from _marked(field.message_type, (*parents, field.name))


def treatment_of(field: FieldDescriptor) -> Treatment:
    """Return the treatment that the contract sets on a field of its messages."""
    pool = field.containing_type.file.pool  # type: ignore[union-attr] # only extensions have none
    # The pool of a compiled contract has its own classes: to the default ones the option is an unknown field.
    options = GetMessageClass(pool.FindMessageTypeByName(_OPTIONS))
    read = options.FromString(field.GetOptions().SerializeToString())
    return Treatment(read.Extensions[pool.FindExtensionByName(_OPTION)])  # type: ignore[index] # the stubs know one pool


class PersonalFieldExtractor:
    """Extracts the personal fields that go to the vault.

    Attributes:
        empty: the values of an event without personal data.

    Raises:
        ContractError: a path leads to a field that is neither a string nor a message.
    """

    def __init__(self, event: Descriptor, paths: Sequence[FieldPath]) -> None:
        self._event = GetMessageClass(event)
        self._paths = paths
        inner = [_field(event, path).message_type for path in paths]
        self._classes = [None if each is None else GetMessageClass(each) for each in inner]
        self.empty: PersonalValues = tuple("" if each is None else b"" for each in inner)

    def remove_from(self, event: Message) -> PersonalValues:
        """Clear the personal fields of an event. Return their values."""
        return tuple(_removed(event, path, empty) for path, empty in zip(self._paths, self.empty, strict=True))

    def values_of(self, events: pa.RecordBatch) -> list[PersonalValues]:
        """Return the personal values of each row of events, columns of the submitted contract that stay unchanged."""
        columns = [
            _texts(_column(events, path)) if inner is None else _messages(_column(events, path), inner)
            for path, inner in zip(self._paths, self._classes, strict=True)
        ]
        return list(zip(*columns, strict=True)) if columns else [()] * events.num_rows

    def as_event(self, values: PersonalValues) -> bytes:
        """Serialize an event that has only these values."""
        event = self._event()
        for path, value in zip(self._paths, values, strict=True):
            if value:
                _set(event, path, value)
        return event.SerializeToString(deterministic=True)


def _field(event: Descriptor, path: FieldPath) -> FieldDescriptor:
    for parent in path.parents:
        event = event.fields_by_name[parent].message_type  # type: ignore[assignment] # it has fields
    field = event.fields_by_name[path.name]
    if field.message_type is None and field.type != FieldDescriptor.TYPE_STRING:
        raise ContractError(f"{field.full_name} is marked for the vault, which takes only strings and messages")
    return field


def _removed(event: Message, path: FieldPath, empty: str | bytes) -> str | bytes:
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
    # Null where the message that has the field is absent.
    texts: list[str] = (column.fill_null("") if column.null_count else column).to_pylist()
    return texts


def _messages(column: pa.StructArray, message: type[Message]) -> list[bytes]:
    found = [b""] * len(column)
    if column.null_count < len(column):
        for row, value in enumerate(column.to_pylist()):
            if value is not None:
                found[row] = message(**value).SerializeToString(deterministic=True)
    return found


def _set(event: Message, path: FieldPath, value: str | bytes) -> None:
    holder = event
    for parent in path.parents:
        holder = getattr(holder, parent)
    if isinstance(value, bytes):
        getattr(holder, path.name).MergeFromString(value)
    else:
        setattr(holder, path.name, value)
