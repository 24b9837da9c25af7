"""Files of Protobuf messages, each preceded by its length as a varint.

Source: Protocol Buffers, `util/delimited_message_util.h`, and `writeDelimitedTo` of its Java library.
"""

from collections.abc import Iterator

import pyarrow as pa

from gamelake.streaming.files.formats.events import FileEvents, Framer, UnreadableFileError

_MORE = 0x80
_VARINT_BYTES = 5


def bodies(content: bytes) -> pa.BinaryArray:
    """The messages of a file (binary), in order.

    Raises:
        UnreadableFileError: a length exceeds the file.
    """
    starts, ends = [], []
    for start, end in _spans(content):
        starts.append(start)
        ends.append(end)
    pieces = [content[start:end] for start, end in zip(starts, ends, strict=True)]
    return pa.array(pieces, pa.binary())


def _spans(content: bytes) -> Iterator[tuple[int, int]]:
    place, whole = 0, len(content)
    while place < whole:
        length, shift = content[place] & 0x7F, 7
        while content[place] & _MORE:
            place += 1
            if place >= whole or shift >= 7 * _VARINT_BYTES:
                raise UnreadableFileError(f"no message length before byte {place}")
            length |= (content[place] & 0x7F) << shift
            shift += 7
        place += 1
        if place + length > whole:
            raise UnreadableFileError(f"the message at byte {place} has {length} bytes, and the file ends before")
        yield place, place + length
        place += length


def read(content: bytes, framer: Framer) -> FileEvents:
    """The events of a file.

    Raises:
        UnreadableFileError: the file is truncated or damaged.
    """
    found = bodies(content)
    return FileEvents(framer.framed(found)) if len(found) else FileEvents(pa.array([], pa.binary()))
