"""Events in serialized form, in the groups in which they were handed over, and the outcome of the batches sent.

Source: https://protobuf.dev/programming-guides/techniques/#streaming and encoding/#varints (length as a varint).
"""

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import IntEnum

_MORE, _BITS, _SHIFT = 0x80, 0x7F, 7


class EventFormat(IntEnum):
    """The serialization of an event; the numbers are those of buffer files."""

    PROTOBUF = 1
    JSON = 2

    @property
    def content_type(self) -> str:
        """The content type of request bodies."""
        return "application/x-protobuf" if self is EventFormat.PROTOBUF else "application/json"


@dataclass(frozen=True, slots=True)
class EventGroup:
    """Events that were handed over together; a batch is a sequence of groups of one format.

    Args:
        ticket: the number that the client gave for them; it grows with each group.
        payload: length-delimited Protobuf messages, or one JSON object.
        first: the index of the first event among those that were handed over; not 0 for a part of a group.
    """

    ticket: int
    event_format: EventFormat
    count: int
    payload: bytes
    first: int = 0

    def events(self) -> tuple[bytes, ...]:
        """Return each event in serialized form."""
        if self.event_format is EventFormat.PROTOBUF:
            return tuple(_messages(self.payload))
        return (self.payload,)

    def halves(self) -> tuple["EventGroup", ...]:
        """Split the group in two, or return it unchanged if it has one event."""
        if self.count == 1:
            return (self,)
        middle = self.count // 2
        messages = [delimited(event) for event in self.events()]
        return (
            replace(self, count=middle, payload=b"".join(messages[:middle])),
            replace(self, count=self.count - middle, payload=b"".join(messages[middle:]), first=self.first + middle),
        )


def body_of(groups: Sequence[EventGroup]) -> bytes:
    """Return the body of a request with the events of groups of one format."""
    payloads = [group.payload for group in groups]
    if groups[0].event_format is EventFormat.PROTOBUF:
        return b"".join(payloads)
    return b'{"events":[%s]}' % b",".join(payloads)


def halves(groups: Sequence[EventGroup]) -> tuple[Sequence[EventGroup], ...]:
    """Split a batch in two of about the same size, or return it unchanged if it has one event."""
    if len(groups) > 1:
        return groups[: len(groups) // 2], groups[len(groups) // 2 :]
    return tuple([half] for half in groups[0].halves())


def delimited(message: bytes) -> bytes:
    """Prefix a Protobuf message with its length."""
    length, prefix = len(message), bytearray()
    while length > _BITS:
        prefix.append(length & _BITS | _MORE)
        length >>= _SHIFT
    prefix.append(length)
    return bytes(prefix) + message


def as_json(event: Mapping[str, object]) -> bytes:
    """Serialize an event as JSON. Without an `event_id` it gets one, which stays the same when it is sent again.

    Raises:
        TypeError: a value's type has no JSON representation.
        ValueError: a number has no JSON representation, a text has half of a surrogate pair, or the event contains
            itself.
    """
    identified = event if event.get("event_id") else {**event, "event_id": str(uuid.uuid4())}
    text = json.dumps(identified, separators=(",", ":"), default=_time_as_text, allow_nan=False, ensure_ascii=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        # As an escape it would be JSON to some, and not to the gateway, which would refuse the whole batch.
        raise ValueError("an event can't contain half of a surrogate pair, which is not a character") from None


def _time_as_text(value: object) -> str:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.isoformat()
    raise TypeError(f"an event can't contain {type(value).__name__}; a datetime needs a time zone")


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
    """An event that the gateway rejected: its index in the batch, and the reason."""

    index: int
    reason: str
    field: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the gateway refused the events of a whole batch; sent again unchanged, they would be refused again."""

    status: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOutcome:
    """The final result for a batch, or for a part of one that was too large: none of its events is sent again.

    Args:
        accepted: the number of events that Kafka has: all but the rejected ones, or none after a refusal.
        attempts: the number of requests.
        seconds: the time of the last request.
    """

    groups: tuple[EventGroup, ...]
    accepted: int
    rejections: tuple[Rejection, ...] = ()
    refusal: Refusal | None = None
    attempts: int = 1
    seconds: float = 0.0

    def events(self) -> tuple[bytes, ...]:
        """Return each event in serialized form; a rejection's index is an index of this tuple."""
        return tuple(event for group in self.groups for event in group.events())

    def accepted_events(self) -> Iterator[bytes]:
        """Yield the events that Kafka has."""
        if self.refusal is not None:
            return
        rejected = {rejection.index for rejection in self.rejections}
        for index, event in enumerate(self.events()):
            if index not in rejected:
                yield event


@dataclass(slots=True, kw_only=True)
class ClientStats:
    """The counts of a client since it was made, in events unless stated otherwise.

    Args:
        buffered: handed over and put into the buffer; those that a file had from before are not counted.
        accepted: acknowledged by the gateway; `rejected` and `refused` ones were reported to `on_outcome`.
        dropped: removed from a full buffer for newer ones; `overflowed` were refused by a full buffer.
        requests: in requests, as are `retries` (a batch's second request or a later one) and `unanswered`: it is not
            known whether the gateway has accepted their events.
        denied: in requests that were answered with 401, 403, 404 or another status about the key or the address; their
            events wait and are sent again.
        sent_bytes: in bytes of request bodies, after compression.
        problem: why the last request has settled nothing; empty once one has.
    """

    buffered: int = 0
    accepted: int = 0
    rejected: int = 0
    refused: int = 0
    dropped: int = 0
    overflowed: int = 0
    requests: int = 0
    retries: int = 0
    unanswered: int = 0
    denied: int = 0
    sent_bytes: int = 0
    problem: str = ""
