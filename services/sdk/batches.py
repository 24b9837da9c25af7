"""Events in serialized form, grouped as they were handed over, and the outcome of the batches that they are sent in.

Source: https://protobuf.dev/programming-guides/techniques/#streaming and encoding/#varints (length as a varint).
"""

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import IntEnum

_MORE, _BITS, _SHIFT = 0x80, 0x7F, 7


class Form(IntEnum):
    """How an event is written; the numbers stand in files."""

    PROTOBUF = 1
    JSON = 2

    @property
    def content_type(self) -> str:
        """What the gateway calls it."""
        return "application/x-protobuf" if self is Form.PROTOBUF else "application/json"


@dataclass(frozen=True, slots=True)
class Parcel:
    """Events that were handed over together.

    Args:
        ticket: what the client said when it took them; it grows.
        payload: Protobuf messages, each behind its length, or one JSON object.
        first: the place of its first event among those that were handed over: not 0 once a parcel was divided.
    """

    ticket: int
    form: Form
    count: int
    payload: bytes
    first: int = 0

    def events(self) -> tuple[bytes, ...]:
        """Each event as it was written."""
        return tuple(_messages(self.payload)) if self.form is Form.PROTOBUF else (self.payload,)

    def halves(self) -> tuple["Parcel", ...]:
        """The parcel as two, or as it is if it has one event."""
        if self.count == 1:
            return (self,)
        middle = self.count // 2
        written = [delimited(event) for event in self.events()]
        return (
            replace(self, count=middle, payload=b"".join(written[:middle])),
            replace(self, count=self.count - middle, payload=b"".join(written[middle:]), first=self.first + middle),
        )


def body_of(parcels: Sequence[Parcel]) -> bytes:
    """The body of a request with the events of parcels of one form."""
    payloads = [parcel.payload for parcel in parcels]
    if parcels[0].form is Form.PROTOBUF:
        return b"".join(payloads)
    return b'{"events":[%s]}' % b",".join(payloads)


def divided(parcels: Sequence[Parcel]) -> tuple[Sequence[Parcel], ...]:
    """The events of parcels in two parts of about the same number, or in one if there is one event."""
    if len(parcels) > 1:
        return parcels[: len(parcels) // 2], parcels[len(parcels) // 2 :]
    return tuple([half] for half in parcels[0].halves())


def delimited(message: bytes) -> bytes:
    """A Protobuf message behind its length."""
    length, written = len(message), bytearray()
    while length > _BITS:
        written.append(length & _BITS | _MORE)
        length >>= _SHIFT
    written.append(length)
    return bytes(written) + message


def as_json(event: Mapping[str, object]) -> bytes:
    """An event as JSON; one without an `event_id` gets one, which it keeps however often it is sent.

    Raises:
        TypeError: it holds what JSON has no word for.
        ValueError: it holds a number that JSON has no word for, or itself.
    """
    named = event if event.get("event_id") else {**event, "event_id": str(uuid.uuid4())}
    return json.dumps(named, separators=(",", ":"), default=_time_as_text, allow_nan=False).encode()


def _time_as_text(value: object) -> str:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.isoformat()
    raise TypeError(f"an event can't hold {type(value).__name__}; a time needs its offset")


def _messages(payload: bytes) -> Iterator[bytes]:
    place = 0
    while place < len(payload):
        length = shift = 0
        while payload[place] & _MORE:
            length |= (payload[place] & _BITS) << shift
            shift, place = shift + _SHIFT, place + 1
        length |= payload[place] << shift
        yield payload[place + 1 : place + 1 + length]
        place += 1 + length


@dataclass(frozen=True, slots=True)
class Rejection:
    """An event that the gateway will not take as it is: its place in the outcome, and why."""

    index: int
    reason: str
    field: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a whole batch was not looked at; sent again as it is, it would be refused again."""

    status: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The end of a batch, or of a part of one that was too large: none of its events is sent again.

    Args:
        accepted: events that Kafka has; all but the rejected ones, or none after a refusal.
        attempts: requests that it took.
        seconds: how long the last of them took.
    """

    parcels: tuple[Parcel, ...]
    accepted: int
    rejections: tuple[Rejection, ...] = ()
    refusal: Refusal | None = None
    attempts: int = 1
    seconds: float = 0.0

    def events(self) -> tuple[bytes, ...]:
        """Each event as it was written; a rejection's index is a place in it."""
        return tuple(event for parcel in self.parcels for event in parcel.events())

    def accepted_events(self) -> Iterator[bytes]:
        """The events that Kafka has."""
        if self.refusal is not None:
            return
        rejected = {rejection.index for rejection in self.rejections}
        for index, event in enumerate(self.events()):
            if index not in rejected:
                yield event


@dataclass(slots=True, kw_only=True)
class Figures:
    """What a client has done since it was made, in events unless it says otherwise.

    Args:
        taken: events that were handed over and taken; those that a file had from before are not among them.
        accepted: acknowledged by the gateway; `rejected` and `refused` ones were told to the caller.
        dropped: given up for newer ones when the buffer was full; `turned_away` were refused for want of room.
        requests: in requests, as are `retries`, which were sent for a batch for the second time or later, and
            `unanswered` ones, of which it is not known whether the gateway has taken their events.
        sent_bytes: in bytes of bodies as they travelled.
    """

    taken: int = 0
    accepted: int = 0
    rejected: int = 0
    refused: int = 0
    dropped: int = 0
    turned_away: int = 0
    requests: int = 0
    retries: int = 0
    unanswered: int = 0
    sent_bytes: int = 0
