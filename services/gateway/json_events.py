"""Events as JSON: an object with the contract's own names, times as RFC 3339 text.

The fast way hands the parsed object to the message class, which checks names and types in C; only what it refuses is
looked at field by field.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import msgspec
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from gamelake.schemas.json_types import UnsupportedFieldError, struct_of
from services.gateway.columns import Read
from services.gateway.errors import Reason, RejectedError, TooLargeError, UnreadableBodyError
from services.gateway.json_columns import JsonColumns

_TIMESTAMP = "google.protobuf.Timestamp"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECONDS_PER_DAY = 86_400
_NANOS_PER_MICRO = 1000

# A value may take a hundred times its length in memory: `{}` does. What is not larger than this needs no looking at.
_SMALL_BYTES = 2**20
_VALUES_PER_EVENT = 64

# An event as its sender wrote it: the one place where what comes in has no type yet.
Written = dict[str, Any]


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    events: list[Any]


class _TypedEvents:
    """Reads bodies whose events are all of the contract's type."""

    def __init__(self, event: Descriptor) -> None:
        kind = struct_of(event)
        body = msgspec.defstruct("Body", [("events", list[kind])], forbid_unknown_fields=True)  # type: ignore[valid-type]
        self.decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(body)
        self.columns = JsonColumns(event)


class JsonEvents:
    """Reads bodies of JSON events of one contract."""

    def __init__(self, event: Descriptor) -> None:
        self._event = event
        self._message: Callable[..., Message] = GetMessageClass(event)
        self._decoder = msgspec.json.Decoder(_Body)
        self._times = tuple(_paths_of_times(event))
        self._typed = _typed_events(event)

    def split(self, body: bytes, most: int) -> Sequence[Any]:
        """The events of a body, each as it was written.

        Raises:
            UnreadableBodyError: the body is no JSON object with a list `events`.
            TooLargeError: it has more than `most` events, or far more values than so many events have.
        """
        if len(body) > _SMALL_BYTES and _most_values(body) > most * _VALUES_PER_EVENT:
            raise TooLargeError(f"a body may hold {most} events, with {_VALUES_PER_EVENT} values each")
        try:
            events = self._decoded(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise UnreadableBodyError('the body is not {"events": [...]}') from None
        if len(events) > most:
            raise TooLargeError(f"a body may hold {most} events")
        return events

    def _decoded(self, body: bytes) -> Sequence[Any]:
        """The events as objects of the contract's type, or, where one of them is none, as whatever they are."""
        if self._typed is not None:
            with suppress(msgspec.ValidationError):
                typed: Sequence[Any] = self._typed.decoder.decode(body).events
                return typed
        return self._decoder.decode(body).events

    def read(self, written: Any) -> Message:  # noqa: ANN401 # whatever JSON has
        """The message of one event.

        Raises:
            RejectedError: the contract has no such event.
        """
        if isinstance(written, msgspec.Struct):
            written = msgspec.to_builtins(written)
        if not isinstance(written, dict):
            raise RejectedError(Reason.MALFORMED)
        for path in self._times:
            _put_time(written, path)
        try:
            return self._message(**written)
        except (TypeError, ValueError, OverflowError):
            raise _explained(self._event, written) from None

    def may_be_columns(self, written: Sequence[Any]) -> bool:
        """Whether the body's events are all of the contract's type."""
        return self._typed is not None and all(isinstance(each, msgspec.Struct) for each in written[:1])

    def columns(self, written: Sequence[Any]) -> Read | None:
        """The events of some bodies together; None when one of them has something that a column can't have."""
        return None if self._typed is None else self._typed.columns.read(written)


def _typed_events(event: Descriptor) -> _TypedEvents | None:
    try:
        return _TypedEvents(event)
    except UnsupportedFieldError:
        return None


def _most_values(body: bytes) -> int:
    """No fewer than there are in the body: what stands in texts is counted too."""
    return body.count(b",") + body.count(b"[") + body.count(b"{")


def _paths_of_times(message: Descriptor, parents: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Where a message has times; those in lists and maps are not looked for, and the contract has none there."""
    for field in message.fields:
        if field.message_type is None or field.is_repeated:
            continue
        if field.message_type.full_name == _TIMESTAMP:
            yield (*parents, field.name)
        else:
            yield from _paths_of_times(field.message_type, (*parents, field.name))


def _put_time(written: Written, path: tuple[str, ...]) -> None:
    """Replace the text of a time by the time."""
    place: Any = written
    for name in path[:-1]:
        place = place.get(name)
        if not isinstance(place, dict):
            return
    text = place.get(path[-1])
    if text is None:
        return
    try:
        since = datetime.fromisoformat(text) - _EPOCH
    except (TypeError, ValueError):  # no text, no time, or a time without its offset
        raise RejectedError(Reason.WRONG_TYPE, ".".join(path)) from None
    # As two numbers: the message class takes a time too, and is slower with it than all the rest of an event.
    seconds = since.days * _SECONDS_PER_DAY + since.seconds
    place[path[-1]] = {"seconds": seconds, "nanos": since.microseconds * _NANOS_PER_MICRO}


def _explained(message: Descriptor, written: Written, parents: str = "") -> RejectedError:
    """Why a message class refused an object: the first field that it would not take alone."""
    for name, value in written.items():
        field = message.fields_by_name.get(name)
        if field is None:
            return RejectedError(Reason.UNKNOWN_FIELD, parents.rstrip("."))
        if not _takes(message, name, value):
            inner = None if field.is_repeated else field.message_type
            if inner is not None and isinstance(value, dict):
                return _explained(inner, value, f"{parents}{name}.")
            return RejectedError(Reason.WRONG_TYPE, f"{parents}{name}")
    return RejectedError(Reason.MALFORMED)


def _takes(message: Descriptor, name: str, value: object) -> bool:
    try:
        GetMessageClass(message)(**{name: value})
    except (TypeError, ValueError, OverflowError):
        return False
    return True
