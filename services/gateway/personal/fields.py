"""Which fields of the submitted event are personal, by the option that stands on them in the contract."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from gamelake.errors import ContractError

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
