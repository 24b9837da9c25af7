"""Events as Protobuf: messages one after the other, each behind its length.

Source: https://protobuf.dev/programming-guides/techniques/#streaming and encoding/#varints (length as a varint).
"""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from services.gateway.columns import Read, handler_of, says_a_key_twice
from services.gateway.errors import Reason, RejectedError, TooLargeError, UnreadableBodyError

_MORE, _BITS = 0x80, 0x7F
# A length of five bytes is beyond any body that is taken.
_LONGEST_LENGTH = 4


class ProtobufEvents:
    """Reads bodies of length-delimited messages of one contract."""

    def __init__(self, event: Descriptor) -> None:
        self._parse: Callable[[bytes], Message] = GetMessageClass(event).FromString
        self._columns = ProtobufColumns(event)

    def split(self, body: bytes, most: int) -> Sequence[bytes]:
        """The events of a body, each as its bytes.

        Raises:
            UnreadableBodyError: a length is broken, or points behind the body's end.
            TooLargeError: the body has more than `most` events.
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
        if len(events) > most:
            raise TooLargeError(f"a body may hold {most} events")
        return events

    def read(self, written: bytes) -> Message:
        """The message of one event.

        Raises:
            RejectedError: it is no such message, or has fields that the contract lacks.
        """
        try:
            event = self._parse(written)
        except DecodeError:
            raise RejectedError(Reason.MALFORMED) from None
        size = event.ByteSize()
        # Nobody could say what is in them, so nobody could say that it is not personal.
        event.DiscardUnknownFields()
        if event.ByteSize() != size:
            raise RejectedError(Reason.UNKNOWN_FIELD)
        return event

    def may_be_columns(self, _written: Sequence[bytes]) -> bool:
        """Bytes can."""
        return True

    def columns(self, written: Sequence[bytes]) -> Read | None:
        """The events of some bodies together; None when one of them is no message."""
        return self._columns.read(written)


def _length_at(body: bytes, place: int) -> tuple[int, int]:
    """The length that begins at a place, and where the message behind it begins."""
    length = 0
    for number, byte in enumerate(body[place : place + _LONGEST_LENGTH]):
        length |= (byte & _BITS) << 7 * number
        if not byte & _MORE:
            return length, place + number + 1
    raise UnreadableBodyError("the body is not a row of messages, each behind its length")


class ProtobufColumns:
    """Reads messages of one contract."""

    def __init__(self, event: Descriptor) -> None:
        self._handler = handler_of(event)

    def read(self, written: Sequence[bytes]) -> Read | None:
        """The events, or None when one of them is no message.

        An event that differs when it is written again has something that the contract lacks, or an unusual order of
        fields: both are in doubt.
        """
        bodies = pa.array(written, pa.binary())
        try:
            events = self._handler.array_to_record_batch(bodies)
        except ValueError:
            return None
        same = pc.equal(self._handler.record_batch_to_array(events), bodies)
        return Read(events, np.invert(same.to_numpy(zero_copy_only=False)) | says_a_key_twice(events))
