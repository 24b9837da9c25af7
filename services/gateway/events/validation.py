"""From a request body to valid events, one by one: an invalid event is rejected and does not affect the others."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from gamelake.contract.games import GamesContract, GameSpec
from gamelake.model.logs import event_logger
from services.gateway.errors import EventRejectedError, EventRejection, Reason, UnsupportedMediaTypeError
from services.gateway.events.columns import ColumnarEvents
from services.gateway.events.json_events import JsonEvents
from services.gateway.events.protobuf_events import ProtobufEvents
from services.gateway.events.text_lengths import TextLengthCheck
from services.gateway.personal.fields import PersonalFieldExtractor, PersonalValues
from services.gateway.personal.pseudonymization import Player

log = event_logger(__name__)

JSON = "application/json"
PROTOBUF = "application/x-protobuf"

# Without personal fields. Kafka's default limit is 1,048,588 bytes and its client's is 1,000,000 bytes, both including
# the overhead of a record.
MAX_EVENT_BYTES = 950_000
# In Protobuf an event never takes four times its length in JSON.
_SMALL_BODY_BYTES = MAX_EVENT_BYTES // 4
_NANOS_PER_MICRO = 1000
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_is_uuid: Callable[[str], object] = _UUID.fullmatch


class BodyFormat(Protocol):
    """A serialization of events in request bodies. A raw event is one event as `split` returns it.

    Raw events are immutable: a batch is read again whenever the vault has to resolve one of its players, and must be
    read the same each time.
    """

    def memory(self, body: bytes, max_events: int) -> int:
        """Return the memory that a body of up to `max_events` events takes until Kafka has them, in bytes; an estimate.

        Raises:
            BodyTooLargeError: the events can't be that few.
        """

    def split(self, body: bytes, max_events: int) -> Sequence[Any]:
        """Return the raw events of a body, including events that `read` will reject.

        Raises:
            RefusedError: the ends of the events are unclear, or the events are too many.
        """

    def read(self, raw_event: Any) -> Message:  # noqa: ANN401 # each format has its own type
        """Return the Protobuf message of one raw event: a new one each time, which the caller may change.

        Raises:
            EventRejectedError: it is not an event of the contract.
        """

    def supports_columns(self, raw_events: Sequence[Any]) -> bool:
        """Return True if `to_columns` can read the raw events of a body."""

    def to_columns(self, raw_events: Sequence[Any]) -> ColumnarEvents:
        """Return the raw events of several bodies as columns.

        Any error means that they have to be read one by one, which finds the event that caused it.
        """


@dataclass(frozen=True, slots=True)
class EventBatch:
    """The raw events of one request.

    A batch is immutable and includes its time of arrival: preparing it twice gives the same result.

    Attributes:
        raw_events: the result of `body_format.split`.
        size: the length of the decompressed body in bytes.
        arrived: when the body was complete, in UTC; it becomes the events' `ingest_time`.
        resolved: the players that the vault has resolved for this request, by their names in the game.
    """

    game: GameSpec
    body_format: BodyFormat
    raw_events: Sequence[Any]
    size: int
    arrived: datetime
    resolved: Mapping[str, Player] = field(default_factory=dict)

    @property
    def may_have_large_events(self) -> bool:
        """True if one of the events may be too large for Kafka; measuring an event takes as long as encoding it."""
        return self.size > _SMALL_BODY_BYTES


@dataclass(frozen=True, slots=True)
class ValidatedEvents:
    """The valid events of a body, in their order, and the rejections of the others.

    Attributes:
        events: without their personal fields; the player's name is still there.
        personal: the personal values of each event.
    """

    events: list[Message]
    personal: list[PersonalValues]
    rejections: list[EventRejection]


class EventValidator:
    """Reads and validates events of one contract, and takes their personal fields out of them."""

    def __init__(self, contract: GamesContract, event: Descriptor, extractor: PersonalFieldExtractor) -> None:
        self._extractor = extractor
        self._lengths = TextLengthCheck(event, contract.lengths)
        self._games = {game.name: game for game in contract.games}
        self._contract = contract
        self._formats: dict[str, BodyFormat] = {JSON: JsonEvents(event), PROTOBUF: ProtobufEvents(event)}

    def game(self, name: str) -> GameSpec:
        """Return a game of the contract."""
        return self._games[name]

    def body_format(self, content_type: str) -> BodyFormat:
        """Return the format of a content type, whose parameters are ignored.

        Raises:
            UnsupportedMediaTypeError: it is not supported.
        """
        found = self._formats.get(content_type.partition(";")[0].strip().lower())
        if found is None:
            raise UnsupportedMediaTypeError(f"content-type must be {JSON} or {PROTOBUF}")
        return found

    def validate(self, batch: EventBatch) -> ValidatedEvents:
        """Read and check the events of a batch, and complete them with the game's name and the arrival time.

        Whatever an event raises rejects that event alone.
        """
        checker = EventChecker(batch.game, self._contract, batch.arrived)
        validated, unforeseen = ValidatedEvents([], [], []), Counter[str]()
        checks_size = batch.may_have_large_events
        for index, raw_event in enumerate(batch.raw_events):
            try:
                event = batch.body_format.read(raw_event)
                checker.check(event)
                self._lengths.check(event)
                personal = self._extractor.remove_from(event)
                if checks_size:
                    _check_size(event)
            except EventRejectedError as rejected:
                validated.rejections.append(EventRejection(index, rejected.reason, rejected.field))
            except MemoryError:
                raise
            except Exception as error:
                unforeseen[type(error).__name__] += 1
                validated.rejections.append(EventRejection(index, Reason.MALFORMED))
            else:
                validated.events.append(event)
                validated.personal.append(personal)
        if unforeseen:
            # Without the errors' texts, which may quote the events.
            log.error("events_unreadable", error_types=dict(unforeseen), action="rejects these events as malformed")
        return validated


class EventChecker:
    """Checks the events of one request, all of one game, against its time of arrival.

    The same checks on columns: `services.gateway.events.columns.invalid_events`.
    """

    def __init__(self, game: GameSpec, contract: GamesContract, arrived: datetime) -> None:
        self._names = frozenset(game.match)
        self._name = game.game_name
        self._arrived_seconds, self._arrived_nanos = int(arrived.timestamp()), arrived.microsecond * _NANOS_PER_MICRO
        seconds, limits = arrived.timestamp(), contract.event_time
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
        arrival.seconds, arrival.nanos = self._arrived_seconds, self._arrived_nanos

    def _check_time(self, event: Message) -> None:
        if not event.HasField("event_time"):
            raise EventRejectedError(Reason.NO_EVENT_TIME, "event_time")
        seconds: int = event.event_time.seconds  # type: ignore[attr-defined]
        if not self._earliest <= seconds <= self._latest:
            raise EventRejectedError(Reason.IMPLAUSIBLE_EVENT_TIME, "event_time")


def _check_size(event: Message) -> None:
    if event.ByteSize() > MAX_EVENT_BYTES:
        raise EventRejectedError(Reason.TOO_LARGE)


def _check_texts(event: Message) -> None:
    if not _is_uuid(event.event_id):  # type: ignore[attr-defined]
        raise EventRejectedError(Reason.NO_EVENT_ID, "event_id")
    if not event.event_name:  # type: ignore[attr-defined]
        raise EventRejectedError(Reason.NO_EVENT_NAME, "event_name")
    if not event.gamer_id:  # type: ignore[attr-defined]
        raise EventRejectedError(Reason.NO_GAMER_ID, "gamer_id")
