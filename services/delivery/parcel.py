"""The events of one partition that become one file: messages behind their lengths, compressed as they come.

Source: Protocol Buffers, `util/delimited_message_util.h`; Amazon Data Firehose, "Understand data delivery", for when a
buffer is full and how files are named.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime

import zstandard

from gamelake.wire.framing import HEADER_BYTES, MAGIC

_MORE = 0x80
_LEVEL = 3


@dataclass(slots=True)
class Parcel:
    """What was read of a partition since the last file.

    Attributes:
        first_offset: of its first record, which names the file: what is delivered again takes its place.
        next_offset: of the record after its last one.
        taken_at: when Kafka took its first record in, in milliseconds since 1970.
        opened_at: when it was begun, by a clock that only rises (seconds).
        events: records that are in the file.
        passed_over: records that are none of events, which the stream of records sets aside.
    """

    partition: int
    first_offset: int
    taken_at: int
    opened_at: float
    next_offset: int = 0
    events: int = 0
    passed_over: int = 0
    unpacked: int = 0
    _content: bytearray = field(default_factory=bytearray)
    _deflater: "zstandard.ZstdCompressionObj" = field(
        default_factory=lambda: zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compressobj()
    )

    def add(self, offset: int, value: bytes | None) -> None:
        """Take a record in; one that has no event's frame is passed over."""
        self.next_offset = offset + 1
        if value is None or len(value) < HEADER_BYTES or value[0] != MAGIC or value[HEADER_BYTES - 1] != 0:
            self.passed_over += 1
            return
        message = varint(len(value) - HEADER_BYTES) + value[HEADER_BYTES:]
        self._content += self._deflater.compress(message)
        self.unpacked += len(message)
        self.events += 1

    def key(self, prefix: str, topic: str) -> str:
        """The name of the file: dated by the hour in which Kafka took the first record in."""
        hour = datetime.fromtimestamp(self.taken_at / 1000, UTC)
        return f"{prefix}{hour:%Y/%m/%d/%H}/{topic}-{self.partition}-{self.first_offset:020d}.binpb.zst"

    def packed(self) -> bytes:
        """The file; nothing can be added any more."""
        return bytes(self._content + self._deflater.flush())


def varint(number: int) -> bytes:
    """A length as Protobuf writes it."""
    result = bytearray()
    while number >= _MORE:
        result.append(number & (_MORE - 1) | _MORE)
        number >>= 7
    result.append(number)
    return bytes(result)
