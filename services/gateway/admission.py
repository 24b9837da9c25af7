"""From a body to events that may pass: each read and checked; one that may not pass holds up no other."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from gamelake.contracts.games import GamesContract, GameSpec
from services.gateway.checking import Checker
from services.gateway.columns.reading import Read
from services.gateway.errors import UnsupportedTypeError
from services.gateway.json_events import JsonEvents
from services.gateway.protobuf_events import ProtobufEvents
from services.gateway.rejections import RejectedError, Rejection

JSON = "application/json"
PROTOBUF = "application/x-protobuf"


class Form(Protocol):
    """A way to write events."""

    def split(self, body: bytes, most: int) -> Sequence[Any]:
        """The events of a body, each as it was written."""

    def read(self, written: Any) -> Message:  # noqa: ANN401 # each form has its own
        """The message of one event."""

    def may_be_columns(self, written: Sequence[Any]) -> bool:
        """Whether `columns` can read the events of a body."""

    def columns(self, written: Sequence[Any]) -> Read | None:
        """The events of some bodies together; None when they have to be read one by one."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """What became of a body."""

    events: list[Message]
    rejections: list[Rejection]


class Admission:
    """Reads the events of one contract."""

    def __init__(self, contract: GamesContract, event: Descriptor) -> None:
        self._games = {game.name: game for game in contract.games}
        self._limits = contract.event_time
        self._forms: dict[str, Form] = {JSON: JsonEvents(event), PROTOBUF: ProtobufEvents(event)}

    def game(self, name: str) -> GameSpec:
        """A game of the contract."""
        return self._games[name]

    def form(self, content_type: str) -> Form:
        """How a body of a content type is read.

        Raises:
            UnsupportedTypeError: it is not taken.
        """
        form = self._forms.get(content_type.partition(";")[0].strip().lower())
        if form is None:
            raise UnsupportedTypeError(f"content-type must be {JSON} or {PROTOBUF}")
        return form

    def admit(self, form: Form, written: Sequence[Any], game: GameSpec) -> Admitted:
        """Read and check the events of one request."""
        checker = Checker(game, self._limits, datetime.now(UTC))
        admitted = Admitted([], [])
        for index, each in enumerate(written):
            try:
                event = form.read(each)
                checker.check(event)
            except RejectedError as rejected:
                admitted.rejections.append(Rejection(index, rejected.reason, rejected.field))
            else:
                admitted.events.append(event)
        return admitted
