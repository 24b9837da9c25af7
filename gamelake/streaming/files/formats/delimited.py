"""Files of Protobuf messages, each preceded by its length as a varint.

Source: Protocol Buffers, `util/delimited_message_util.h`, and `writeDelimitedTo` of its Java library.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from gamelake.streaming.files.formats.events import FIRST_RECORDS, LARGEST_EVENT, Framer, UnreadableFileError

_MORE = 0x80
_VARINT_BYTES = 5


def bodies(pieces: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield the messages of a file's pieces in order, as one list per piece.

    Raises:
        UnreadableFileError: a length is invalid, is beyond the largest event, or exceeds the file.
    """
    rest = b""
    for piece in pieces:
        found, rest = _split(rest + piece)
        yield found
    if rest:
        raise UnreadableFileError("the file is truncated: it ends in the middle of a message")


def _split(content: bytes) -> tuple[list[bytes], bytes]:
    """Return the complete messages of some content, and the rest of the content."""
    found: list[bytes] = []
    place, end = 0, len(content)
    while place < end:
        start, length, shift = place, content[place] & 0x7F, 7
        while content[place] & _MORE:
            place += 1
            if shift >= 7 * _VARINT_BYTES:
                raise UnreadableFileError("the length of a message is invalid")
            if place >= end:
                return found, content[start:]
            length |= (content[place] & 0x7F) << shift
            shift += 7
        if length > LARGEST_EVENT:
            raise UnreadableFileError(f"a message has more than {LARGEST_EVENT} bytes")
        place += 1
        if place + length > end:
            return found, content[start:]
        found.append(content[place : place + length])
        place += length
    return found, b""


def read(pieces: Iterable[bytes], framer: Framer) -> Iterator[pa.BinaryArray]:
    """Yield the framed events (binary) of a file's pieces in order, as one array per piece.

    Raises:
        UnreadableFileError: the file is truncated or damaged, or none of its first messages is an event.
    """
    first: list[bytes] = []
    is_checked = False
    for found in bodies(pieces):
        if found and not is_checked:
            first += found[:FIRST_RECORDS]
            is_checked = any(framer.is_event(body) for body in first)
            if not is_checked and len(first) >= FIRST_RECORDS:
                break
        yield framer.framed(pa.array(found, pa.binary())) if found else pa.array([], pa.binary())
    if first and not is_checked:
        raise UnreadableFileError(f"none of the first {len(first)} messages is an event")
