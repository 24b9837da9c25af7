"""Request bodies in JSON: objects with the contract's field names, times as RFC 3339 text.

The fast path gives the parsed object to the message class, which checks names and types in C. Only an object that it
refuses is examined field by field, for the reason.

A raw event never changes. The gateway prepares a batch again after the vault has resolved its players, and then has to
read the same events.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import msgspec
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from gamelake.schemas.json_types import UnsupportedFieldError, parse_time, struct_of
from services.gateway.errors import BodyTooLargeError, EventRejectedError, Reason
from services.gateway.events.columns import ColumnarEvents
from services.gateway.events.json_columns import JsonColumnReader
from services.gateway.events.json_splitting import event_texts
from services.gateway.limits.memory_budget import VALUES_PER_EVENT, json_bytes

_TIMESTAMP = "google.protobuf.Timestamp"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECONDS_PER_DAY = 86_400
_NANOS_PER_MICRO = 1000


# An event whose fields have no type yet.
_Untyped = dict[str, Any]

# Raised by msgspec for text that is not JSON, is not of the wanted type, or is nested too deeply.
_NOT_DECODED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    """A body whose events are not decoded yet: the text of an event may still be invalid, such as invalid UTF-8."""

    events: list[msgspec.Raw]


class _TypedEvents:
    """Decodes a body if all its events are of the contract's type, or a single event of that type."""

    def __init__(self, event: Descriptor) -> None:
        kind = struct_of(event)
        body = msgspec.defstruct("Body", [("events", list[kind])], forbid_unknown_fields=True)  # type: ignore[valid-type]
        self.body_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(body)
        self.event_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(kind)
        self.columns = JsonColumnReader(event)


class JsonEvents:
    """The body format for JSON events of one contract.

    A raw event is a frozen struct of the contract's type if all events of its body are; otherwise the event's text.
    """

    def __init__(self, event: Descriptor) -> None:
        self._event = event
        self._message: Callable[..., Message] = GetMessageClass(event)
        self._texts = msgspec.json.Decoder(_Body)
        self._values = msgspec.json.Decoder()
        self._times = tuple(_paths_of_times(event))
        self._typed = _typed_events(event)

    def memory(self, body: bytes, max_events: int) -> int:
        """Return the memory that the events of a body take, in bytes.

        Raises:
            BodyTooLargeError: the body has more values than `max_events` events may have.
        """
        # An upper bound: characters in texts are counted too.
        values = body.count(b",") + body.count(b"[") + body.count(b"{")
        if values > max_events * VALUES_PER_EVENT:
            raise BodyTooLargeError(f"a body may contain {max_events} events, with {VALUES_PER_EVENT} values each")
        return json_bytes(len(body), values)

    def split(self, body: bytes, max_events: int) -> Sequence[Any]:
        """Return the raw events of a body; a broken event does not affect the others.

        Raises:
            UnreadableBodyError: the body is not an object with a list `events`, or its brackets and quotes don't match.
            BodyTooLargeError: the body has too many events.
        """
        events = self._decode(body, max_events)
        if len(events) > max_events:
            raise BodyTooLargeError(f"a body may contain {max_events} events")
        return events

    def _decode(self, body: bytes, max_events: int) -> Sequence[Any]:
        """Return structs of the contract's type, or, if one event is of another type, the text of each event.

        Whatever a body's content makes a decoder raise, the next way of splitting it decides.
        """
        if self._typed is not None:
            with suppress(Exception):
                typed: Sequence[Any] = self._typed.body_decoder.decode(body).events
                return typed
        with suppress(Exception):
            return self._texts.decode(body).events
        return event_texts(body, max_events)

    def read(self, raw_event: Any) -> Message:  # noqa: ANN401 # a struct or a text
        """Return a new message of one event at each call.

        Raises:
            EventRejectedError: it is not an event of the contract.
        """
        is_typed = isinstance(raw_event, msgspec.Struct)
        event: _Untyped = msgspec.to_builtins(raw_event) if is_typed else self._event_of(raw_event)
        for path in self._times:
            _parse_time(event, path)
        try:
            return self._message(**event)
        except (TypeError, ValueError, OverflowError):
            raise _rejection_of(self._event, event) from None

    def _event_of(self, text: bytes | msgspec.Raw) -> _Untyped:
        if self._typed is not None:
            # An event is read the same whether the others of its body are of the contract's type or not.
            with suppress(*_NOT_DECODED):
                typed: _Untyped = msgspec.to_builtins(self._typed.event_decoder.decode(text))
                return typed
        try:
            event = self._values.decode(text)
        except _NOT_DECODED:
            raise EventRejectedError(Reason.MALFORMED) from None
        if not isinstance(event, dict):
            raise EventRejectedError(Reason.MALFORMED)
        _check_kinds(self._event, event)
        return event

    def supports_columns(self, raw_events: Sequence[Any]) -> bool:
        """Return True if the body's events are all of the contract's type."""
        return self._typed is not None and all(isinstance(each, msgspec.Struct) for each in raw_events[:1])

    def to_columns(self, raw_events: Sequence[Any]) -> ColumnarEvents:
        """Return the events as columns."""
        if self._typed is None:
            raise UnsupportedFieldError(self._event.full_name)
        return self._typed.columns.read(raw_events)


def _typed_events(event: Descriptor) -> _TypedEvents | None:
    try:
        return _TypedEvents(event)
    except UnsupportedFieldError:
        return None


def _paths_of_times(message: Descriptor, parents: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of a message's times, except those in lists and maps, where the contract has none."""
    for field in message.fields:
        if field.message_type is None or field.is_repeated:
            continue
        if field.message_type.full_name == _TIMESTAMP:
            yield (*parents, field.name)
        else:
            yield from _paths_of_times(field.message_type, (*parents, field.name))


def _parse_time(event: _Untyped, path: tuple[str, ...]) -> None:
    """Replace the text of a time by the time."""
    parent: Any = event
    for name in path[:-1]:
        parent = parent.get(name)
        if not isinstance(parent, dict):
            return
    text = parent.get(path[-1])
    if text is None:
        return
    try:
        since = parse_time(text) - _EPOCH
    except (TypeError, ValueError):  # no text, no time, or a time without its offset
        raise EventRejectedError(Reason.WRONG_TYPE, ".".join(path)) from None
    # As two numbers: the message class accepts a datetime too, but takes longer for it than for the rest of an event.
    seconds = since.days * _SECONDS_PER_DAY + since.seconds
    parent[path[-1]] = {"seconds": seconds, "nanos": since.microseconds * _NANOS_PER_MICRO}


def _check_kinds(message: Descriptor, event: _Untyped, parents: str = "") -> None:
    """Check for values that a message class takes for others: the letters of a text for a list, `true` for 1.

    Raises:
        EventRejectedError: there is one. Whatever else is wrong, the message class finds.
    """
    for name, value in event.items():
        field = message.fields_by_name.get(name)
        if field is None or value is None:
            continue
        inner = field.message_type
        if inner is not None and not field.is_repeated:
            if isinstance(value, dict):
                _check_kinds(inner, value, f"{parents}{name}.")
        elif not _is_of_kind(field, value):
            raise EventRejectedError(Reason.WRONG_TYPE, f"{parents}{name}")


def _is_of_kind(field: FieldDescriptor, value: object) -> bool:
    if field.is_repeated:
        is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
        return isinstance(value, dict if is_map else list)
    return isinstance(value, bool) == (field.type == FieldDescriptor.TYPE_BOOL)


def _rejection_of(message: Descriptor, event: _Untyped, parents: str = "") -> EventRejectedError:
    """Why a message class refused an object: the first field that it refuses by itself."""
    for name, value in event.items():
        field = message.fields_by_name.get(name)
        if field is None:
            return EventRejectedError(Reason.UNKNOWN_FIELD, parents.rstrip("."))
        if not _accepts(message, name, value):
            inner = None if field.is_repeated else field.message_type
            if inner is not None and isinstance(value, dict):
                return _rejection_of(inner, value, f"{parents}{name}.")
            return EventRejectedError(Reason.WRONG_TYPE, f"{parents}{name}")
    return EventRejectedError(Reason.MALFORMED)


def _accepts(message: Descriptor, name: str, value: object) -> bool:
    try:
        GetMessageClass(message)(**{name: value})
    except (TypeError, ValueError, OverflowError):
        return False
    return True
