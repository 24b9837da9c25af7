"""Request bodies in Protobuf: length-delimited messages.

Source: https://protobuf.dev/programming-guides/techniques/#streaming and encoding/#varints (length as a varint).
"""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from services.gateway.errors import BodyTooLargeError, EventRejectedError, Reason, UnreadableBodyError
from services.gateway.events.columns import ColumnarEvents, handler_of, has_duplicate_map_keys
from services.gateway.limits.memory_budget import protobuf_bytes

_MORE, _BITS = 0x80, 0x7F
# A length of five bytes is beyond any accepted body.
_MAX_LENGTH_BYTES = 4


class ProtobufEvents:
    """The body format for messages of one contract; a raw event is the bytes of its message."""

    def __init__(self, event: Descriptor) -> None:
        self._parse: Callable[[bytes], Message] = GetMessageClass(event).FromString
        self._handler = handler_of(event)

    def memory(self, body: bytes, _max_events: int) -> int:
        """Return the memory that the events of a body take, in bytes."""
        return protobuf_bytes(len(body))

    def split(self, body: bytes, max_events: int) -> Sequence[bytes]:
        """Split a body into its raw events.

        Raises:
            UnreadableBodyError: a length is broken, or points behind the body's end.
            BodyTooLargeError: the body has more than `max_events` events.
        """
        events, place, size = [], 0, len(body)
        while place < size:
            # Nearly all events have a length of two bytes.
            if place + 1 < size and body[place] & _MORE and not body[place + 1] & _MORE:
                length, start = body[place] & _BITS | body[place + 1] << 7, place + 2
            else:
                length, start = _length_at(body, place)
            place = start + length
            events.append(body[start:place])
        if place > size:
            raise UnreadableBodyError("the last event of the body is cut off")
        if len(events) > max_events:
            raise BodyTooLargeError(f"a body may contain {max_events} events")
        return events

    def read(self, raw_event: bytes) -> Message:
        """Read the message of one event.

        Raises:
            EventRejectedError: it is not such a message, or has fields that the contract lacks.
        """
        try:
            event = self._parse(raw_event)
        except DecodeError:
            raise EventRejectedError(Reason.MALFORMED) from None
        size = event.ByteSize()
        # Unknown fields may contain personal data.
        event.DiscardUnknownFields()
        if event.ByteSize() != size:
            raise EventRejectedError(Reason.UNKNOWN_FIELD)
        return event

    def supports_columns(self, _raw_events: Sequence[bytes]) -> bool:
        """Return True: columns are always supported."""
        return True

    def to_columns(self, raw_events: Sequence[bytes]) -> ColumnarEvents:
        """Return the events as columns.

        An event whose bytes differ after it was encoded again has fields that the contract lacks, or an unusual order
        of fields: both make it uncertain.
        """
        bodies = pa.array(raw_events, pa.binary())
        events = self._handler.array_to_record_batch(bodies)
        same = pc.equal(self._handler.record_batch_to_array(events), bodies)
        return ColumnarEvents(events, np.invert(same.to_numpy(zero_copy_only=False)) | has_duplicate_map_keys(events))


def _length_at(body: bytes, place: int) -> tuple[int, int]:
    """The length that begins at a place, and where the message behind it begins."""
    length = 0
    for number, byte in enumerate(body[place : place + _MAX_LENGTH_BYTES]):
        length |= (byte & _BITS) << 7 * number
        if not byte & _MORE:
            return length, place + number + 1
    raise UnreadableBodyError("the body is not a sequence of length-delimited messages")
