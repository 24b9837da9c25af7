"""Bound how much memory messages take once they are decoded, before they are decoded.

Two bytes of a record can be an empty message with a thousand columns, and one byte can be a name of an enum. A schema
bounds what a byte may become. Only where that is much, the messages inside the bodies are counted: by decoding the
bodies with a type that has only these messages.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from gamelake.model.arrays import Ints
from gamelake.schemas.limits import SINGLE_COLUMNS

_PACKAGE = "counted"
_NUMBER, _OFFSET, _LONGEST_NUMBER = 8, 4, 11
_TEXTS = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)
_LEAST_BYTES = 2  # of a text or a message on the wire: its tag and its length
# A number in a list may have one byte on the wire. What takes more than eight times its bytes is counted.
_UNCOUNTED_PER_BYTE = 8
# A byte of a text that is not UTF-8 becomes U+FFFD.
_CONTENT_PER_BYTE = 3
_COUNTED_AT_ONCE = 4 * 2**20


@dataclass(slots=True)
class Counted:
    """A message type of which nothing is left but the lists to be counted, and the messages that have some.

    Attributes:
        lists: what an element takes, and what is counted inside it (None for nothing), by the names of the lists.
        messages: by the names of the fields that have one message at most.
    """

    lists: dict[str, tuple[int, "Counted | None"]] = field(default_factory=dict)
    messages: dict[str, "Counted"] = field(default_factory=dict)

    def sizes(self, messages: pa.StructArray) -> Ints:
        """Return the bytes that the counted lists of each message take."""
        total = np.zeros(len(messages), np.int64)
        for name, message in self.messages.items():
            total += message.sizes(messages.field(name))
        for name, (each, inner) in self.lists.items():
            elements = messages.field(name)
            offsets = elements.offsets.to_numpy().astype(np.int64)
            total += np.diff(offsets) * each
            if inner is not None:
                ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(inner.sizes(elements.values))])
                total += ends[offsets[1:]] - ends[offsets[:-1]]
        return total


@dataclass(frozen=True, slots=True)
class Expansion:
    """The memory that messages of one type take.

    Attributes:
        row_bytes: what any message takes, also an empty one.
        per_byte: what a byte of a message may become, besides the counted lists.
        most_per_byte: what it may become there.
        counted: the lists that can take many times their bytes; None if there are none.
        counting: the type that has only these.
    """

    row_bytes: int
    per_byte: int
    most_per_byte: int
    counted: Counted | None
    counting: Descriptor

    def most(self, messages: int, size: int) -> int:
        """Return an upper bound for some messages that have some bytes in all."""
        return messages * self.row_bytes + size * self.most_per_byte


def expansion_of(message: Descriptor) -> Expansion:
    """Return how messages of a type expand; the type must be within the limits of schemas and have no groups."""
    builder = _Builder()
    row_bytes, counted = builder.message(message, ())
    pool = DescriptorPool()
    pool.Add(builder.file)
    counting = pool.FindMessageTypeByName(f"{_PACKAGE}.M0")
    most_per_byte = max(builder.per_byte, builder.counted_per_byte)
    return Expansion(row_bytes, builder.per_byte, most_per_byte, counted, counting)


class _Builder:
    """Declares the counting type, with a new message at each place at which one stands."""

    def __init__(self) -> None:
        self.file = FileDescriptorProto(name="counted.proto", package=_PACKAGE, syntax="proto3")
        self.per_byte, self.counted_per_byte = _CONTENT_PER_BYTE, 0
        self._enums: dict[str, int] = {}

    def message(self, message: Descriptor, outer: tuple[str, ...]) -> tuple[int, Counted | None]:
        """Declare a message; return what one of it takes without lists, and the lists to be counted."""
        declared = self.file.message_type.add(name=f"M{len(self.file.message_type)}")
        counted, path, size = Counted(), (*outer, str(message.full_name)), 1
        for part in message.fields:
            taken = self._field(declared, part, path, counted)
            size += _OFFSET if part.is_repeated else taken
        return size, counted if counted.lists or counted.messages else None

    def _field(self, declared: DescriptorProto, part: FieldDescriptor, path: tuple[str, ...], counted: Counted) -> int:
        """Declare a field if it has lists that are counted; return what a value of it takes."""
        name, inner = f"f{part.number}", part.message_type
        if inner is None or inner.full_name in SINGLE_COLUMNS or inner.full_name in path:
            size, least, lists = self._leaf_bytes(part), 1 if _shares_a_tag(part) else _LEAST_BYTES, None
        else:
            place = len(self.file.message_type)
            size, lists = self.message(inner, path)
            least = _LEAST_BYTES
        per_byte = -(-size // least) if part.is_repeated else 0
        is_counted = part.is_repeated and (lists is not None or per_byte > _UNCOUNTED_PER_BYTE)
        if is_counted:
            self.counted_per_byte = max(self.counted_per_byte, per_byte)
            counted.lists[name] = (size, lists)
        else:
            self.per_byte = max(self.per_byte, per_byte)
        if lists is not None and not is_counted:
            counted.messages[name] = lists
        if is_counted or lists is not None:
            new = declared.field.add(name=name, number=part.number, type=FieldDescriptorProto.TYPE_INT32)
            new.label = new.LABEL_REPEATED if part.is_repeated else new.LABEL_OPTIONAL
            if inner is not None:
                new.type, new.type_name = new.TYPE_MESSAGE, f".{_PACKAGE}.M{place}"
        return size

    def _leaf_bytes(self, part: FieldDescriptor) -> int:
        """Return what a value of a field takes without the content of a text."""
        if part.enum_type is not None:
            name = str(part.enum_type.full_name)
            if name not in self._enums:
                self._enums[name] = max(len(number.name) for number in part.enum_type.values)
            return _OFFSET + max(_LONGEST_NUMBER, self._enums[name])
        if part.message_type is not None:
            return _OFFSET + _NUMBER
        return _OFFSET if part.type in _TEXTS else _NUMBER


def _shares_a_tag(part: FieldDescriptor) -> bool:
    return part.message_type is None and part.type not in _TEXTS


def lengths_of(bodies: pa.BinaryArray) -> Ints:
    """Return the length of each body in bytes (int64)."""
    return np.asarray(pc.binary_length(bodies).to_numpy().astype(np.int64))


def portions(sizes: Ints, most: int) -> Iterator[tuple[int, int]]:
    """Split rows, in order, into ranges (first, end) with a sum of sizes of at most `most`, or of one row."""
    ends, start = np.cumsum(sizes), 0
    while start < len(sizes):
        before = int(ends[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(ends, before + most, side="right")))
        yield start, end
        start = end
