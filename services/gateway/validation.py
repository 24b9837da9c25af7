"""From a request body to valid events, one by one: an invalid event is rejected and does not affect the others."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from gamelake.model.games import EventTimeLimits, GamesContract, GameSpec
from services.gateway.columns import Read
from services.gateway.errors import Reason, RejectedError, Rejection, UnsupportedTypeError
from services.gateway.json_events import JsonEvents
from services.gateway.protobuf_events import ProtobufEvents

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


_NANOS_PER_MICRO = 1000
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_is_uuid: Callable[[str], object] = _UUID.fullmatch


class Checker:
    """Checks the events of one request, all of one game and one moment (seconds since 1970)."""

    def __init__(self, game: GameSpec, limits: EventTimeLimits, now: datetime) -> None:
        self._names = frozenset(game.match)
        self._name = game.game_name
        self._now_seconds, self._now_nanos = int(now.timestamp()), now.microsecond * _NANOS_PER_MICRO
        seconds = now.timestamp()
        self._earliest = seconds - limits.max_age.total_seconds()
        self._latest = seconds + limits.max_ahead.total_seconds()

    def check(self, event: Message) -> None:
        """Write the game's name and the time of arrival into an event that may pass.

        Raises:
            RejectedError: it may not.
        """
        _require_texts(event)
        self._check_time(event)
        name: str = event.game_name  # type: ignore[attr-defined] # the contract's messages are made at run time
        if name and name not in self._names:
            raise RejectedError(Reason.OTHER_GAME, "game_name")
        if not name:
            event.game_name = self._name  # type: ignore[attr-defined]
        arrival = event.ingest_time  # type: ignore[attr-defined]
        arrival.seconds, arrival.nanos = self._now_seconds, self._now_nanos

    def _check_time(self, event: Message) -> None:
        if not event.HasField("event_time"):
            raise RejectedError(Reason.NO_EVENT_TIME, "event_time")
        seconds: int = event.event_time.seconds  # type: ignore[attr-defined]
        if not self._earliest <= seconds <= self._latest:
            raise RejectedError(Reason.IMPLAUSIBLE_EVENT_TIME, "event_time")


def _require_texts(event: Message) -> None:
    if not _is_uuid(event.event_id):  # type: ignore[attr-defined]
        raise RejectedError(Reason.NO_EVENT_ID, "event_id")
    if not event.event_name:  # type: ignore[attr-defined]
        raise RejectedError(Reason.NO_EVENT_NAME, "event_name")
    if not event.gamer_id:  # type: ignore[attr-defined]
        raise RejectedError(Reason.NO_GAMER_ID, "gamer_id")
