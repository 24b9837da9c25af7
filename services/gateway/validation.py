"""From a request body to valid events, one by one: an invalid event is rejected and does not affect the others."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from gamelake.model.games import GamesContract, GameSpec
from services.gateway.columns import ColumnarEvents
from services.gateway.errors import EventRejectedError, EventRejection, Reason, UnsupportedMediaTypeError
from services.gateway.json_events import JsonEvents
from services.gateway.protobuf_events import ProtobufEvents

JSON = "application/json"
PROTOBUF = "application/x-protobuf"

_NANOS_PER_MICRO = 1000
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_is_uuid: Callable[[str], object] = _UUID.fullmatch


class BodyFormat(Protocol):
    """A serialization of events in request bodies. A raw event is one event as `split` gives it."""

    def split(self, body: bytes, max_events: int) -> Sequence[Any]:
        """The raw events of a body."""

    def read(self, raw_event: Any) -> Message:  # noqa: ANN401 # each format has its own type
        """The Protobuf message of one raw event."""

    def supports_columns(self, raw_events: Sequence[Any]) -> bool:
        """Whether `to_columns` can read the raw events of a body."""

    def to_columns(self, raw_events: Sequence[Any]) -> ColumnarEvents | None:
        """The raw events of several bodies as columns; None if they have to be read one by one."""


@dataclass(frozen=True, slots=True)
class ValidatedEvents:
    """The valid events of a body, in their order, and the rejections of the others."""

    events: list[Message]
    rejections: list[EventRejection]


class EventValidator:
    """Reads and validates events of one contract."""

    def __init__(self, contract: GamesContract, event: Descriptor) -> None:
        self._games = {game.name: game for game in contract.games}
        self._contract = contract
        self._formats: dict[str, BodyFormat] = {JSON: JsonEvents(event), PROTOBUF: ProtobufEvents(event)}

    def game(self, name: str) -> GameSpec:
        """A game of the contract."""
        return self._games[name]

    def body_format(self, content_type: str) -> BodyFormat:
        """The format of a content type, whose parameters are ignored.

        Raises:
            UnsupportedMediaTypeError: it is not supported.
        """
        found = self._formats.get(content_type.partition(";")[0].strip().lower())
        if found is None:
            raise UnsupportedMediaTypeError(f"content-type must be {JSON} or {PROTOBUF}")
        return found

    def validate(self, body_format: BodyFormat, raw_events: Sequence[Any], game: GameSpec) -> ValidatedEvents:
        """Read and check the events of one request, and complete them with the game's name and the arrival time."""
        checker = EventChecker(game, self._contract, datetime.now(UTC))
        validated = ValidatedEvents([], [])
        for index, raw_event in enumerate(raw_events):
            try:
                event = body_format.read(raw_event)
                checker.check(event)
            except EventRejectedError as rejected:
                validated.rejections.append(EventRejection(index, rejected.reason, rejected.field))
            else:
                validated.events.append(event)
        return validated


class EventChecker:
    """Checks the events of one request, all of one game; `now` becomes their time of arrival.

    The same checks on columns: `services.gateway.columns.invalid_events`.
    """

    def __init__(self, game: GameSpec, contract: GamesContract, now: datetime) -> None:
        self._names = frozenset(game.match)
        self._name = game.game_name
        self._now_seconds, self._now_nanos = int(now.timestamp()), now.microsecond * _NANOS_PER_MICRO
        seconds, limits = now.timestamp(), contract.event_time
        self._largest_amount = contract.amount.max
        self._earliest = seconds - limits.max_age.total_seconds()
        self._latest = seconds + limits.max_ahead.total_seconds()

    def check(self, event: Message) -> None:
        """Write the game's name and the time of arrival into a valid event.

        Raises:
            EventRejectedError: the event is invalid.
        """
        _check_texts(event)
        self._check_time(event)
        # NaN is not less than anything; an absent amount is 0.
        amount: float = event.event_params.amount  # type: ignore[attr-defined]
        if not abs(amount) <= self._largest_amount:
            raise EventRejectedError(Reason.IMPLAUSIBLE_AMOUNT, "event_params.amount")
        name: str = event.game_name  # type: ignore[attr-defined] # the contract's messages are made at run time
        if name and name not in self._names:
            raise EventRejectedError(Reason.OTHER_GAME, "game_name")
        if not name:
            event.game_name = self._name  # type: ignore[attr-defined]
        arrival = event.ingest_time  # type: ignore[attr-defined]
        arrival.seconds, arrival.nanos = self._now_seconds, self._now_nanos

    def _check_time(self, event: Message) -> None:
        if not event.HasField("event_time"):
            raise EventRejectedError(Reason.NO_EVENT_TIME, "event_time")
        seconds: int = event.event_time.seconds  # type: ignore[attr-defined]
        if not self._earliest <= seconds <= self._latest:
            raise EventRejectedError(Reason.IMPLAUSIBLE_EVENT_TIME, "event_time")


def _check_texts(event: Message) -> None:
    if not _is_uuid(event.event_id):  # type: ignore[attr-defined]
        raise EventRejectedError(Reason.NO_EVENT_ID, "event_id")
    if not event.event_name:  # type: ignore[attr-defined]
        raise EventRejectedError(Reason.NO_EVENT_NAME, "event_name")
    if not event.gamer_id:  # type: ignore[attr-defined]
        raise EventRejectedError(Reason.NO_GAMER_ID, "gamer_id")
