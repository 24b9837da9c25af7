"""The buffer's file: an append-only log of added and settled events, which is truncated when all are settled.

    record = crc32 of the rest (4 bytes) + length of the body (4) + kind (1) + body; little-endian

A process may die in the middle of a record: bytes after the last whole record are cut off. The file outlives the
process, but not a power failure: it is not synced to the disk.
"""

import fcntl
import logging
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from .batches import EventFormat, EventGroup
from .errors import BufferFileError

log = logging.getLogger(__name__)

_MAGIC = b"GLSDK\x00\x00\x01"
_HEADER, _REST = struct.Struct("<IIB"), struct.Struct("<IB")
_ADDED, _SETTLED = 1, 2
_GROUP, _TICKETS = struct.Struct("<QBI"), struct.Struct("<QQ")
# The file is rewritten when it is larger than twice its unsettled events and this.
_MIN_REWRITE_BYTES = 2**20


class Journal:
    """A file that one client at a time has open; only its owner may read it, as events contain personal data.

    Raises:
        BufferFileError: it can't be read or written, is not a buffer file, or another client uses it.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            self._descriptor = _open(file)
            content = file.read_bytes()
        except OSError as error:
            raise BufferFileError(f"{file}: {error.strerror}") from error
        if content[: len(_MAGIC)] != _MAGIC[: len(content)]:
            os.close(self._descriptor)
            raise BufferFileError(f"{file} is not a buffer file of this SDK; choose another path")
        self._size = 0
        self._waiting = self._read(content)
        self._live = sum(_GROUP.size + len(group.payload) for group in self._waiting.values())

    def waiting(self) -> Sequence[EventGroup]:
        """Return the groups that are not settled, in their order."""
        return tuple(self._waiting.values())

    def append(self, group: EventGroup) -> None:
        """Add a group.

        Raises:
            BufferFileError: it could not be written; nothing of it is in the file.
        """
        body = _GROUP.pack(group.ticket, group.event_format, group.count) + group.payload
        self._write(_record(_ADDED, body))
        self._waiting[group.ticket] = group
        self._live += len(body)

    def settle(self, groups: Sequence[EventGroup]) -> None:
        """Mark groups as settled, and free their space when it is worth it.

        Raises:
            BufferFileError: the file could not be written; after a restart the groups would be sent again.
        """
        for group in groups:
            if self._waiting.pop(group.ticket, None) is not None:
                self._live -= _GROUP.size + len(group.payload)
        if not self._waiting:
            self._truncate(len(_MAGIC))
        elif self._size > 2 * self._live + _MIN_REWRITE_BYTES:
            self._rewrite()
        else:
            settled = (_TICKETS.pack(first, last) for first, last in _ranges(groups))
            self._write(b"".join(_record(_SETTLED, body) for body in settled))

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _read(self, content: bytes) -> dict[int, EventGroup]:
        found: dict[int, EventGroup] = {}
        end = len(_MAGIC)
        for kind, body, behind in _records(content):
            end = behind
            if kind == _ADDED:
                ticket, event_format, count = _GROUP.unpack_from(body)
                found[ticket] = EventGroup(ticket, EventFormat(event_format), count, body[_GROUP.size :])
            else:
                first, last = _TICKETS.unpack(body)
                for ticket in range(first, last + 1):
                    found.pop(ticket, None)
        if end < len(content):
            log.warning(
                "%s: cut off %d bytes after the last whole record",
                self._file,
                len(content) - end,
                extra={"event": "journal_cut_off"},
            )
        if len(content) < len(_MAGIC):
            self._write(_MAGIC[len(content) :])
        self._truncate(end)
        return found

    def _write(self, written: bytes) -> None:
        try:
            whole = os.write(self._descriptor, written) == len(written)
        except OSError as error:
            self._undo()
            raise BufferFileError(f"{self._file}: {error.strerror}") from error
        if not whole:
            self._undo()
            raise BufferFileError(f"{self._file}: the disk is full")
        self._size += len(written)

    def _undo(self) -> None:
        # An incomplete record would hide all records after it.
        with suppress(OSError):
            os.ftruncate(self._descriptor, self._size)

    def _truncate(self, size: int) -> None:
        try:
            os.ftruncate(self._descriptor, size)
        except OSError as error:
            raise BufferFileError(f"{self._file}: {error.strerror}") from error
        self._size = size

    def _rewrite(self) -> None:
        """Replace the file by one that has only the groups that are not settled."""
        bodies = (
            _GROUP.pack(each.ticket, each.event_format, each.count) + each.payload for each in self._waiting.values()
        )
        written = _MAGIC + b"".join(_record(_ADDED, body) for body in bodies)
        new = self._file.with_name(f"{self._file.name}.new")
        try:
            new.unlink(missing_ok=True)
            descriptor = _open(new)
            new.write_bytes(written)
            new.replace(self._file)
        except OSError as error:
            raise BufferFileError(f"{self._file}: {error.strerror}") from error
        os.close(self._descriptor)
        self._descriptor, self._size = descriptor, len(written)


def _open(file: Path) -> int:
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise BufferFileError(f"{file}: another client uses it") from error
    # The client before may have replaced the file between the two calls above.
    if os.fstat(descriptor).st_ino != file.stat().st_ino:
        os.close(descriptor)
        raise BufferFileError(f"{file}: another client has just replaced it; try again")
    return descriptor


def _record(kind: int, body: bytes) -> bytes:
    rest = _REST.pack(len(body), kind)
    return _HEADER.pack(zlib.crc32(body, zlib.crc32(rest)), len(body), kind) + body


def _records(content: bytes) -> Iterator[tuple[int, bytes, int]]:
    """The whole records from the start: kind, body, and the offset after each."""
    place = len(_MAGIC)
    while place + _HEADER.size <= len(content):
        checksum, length, kind = _HEADER.unpack_from(content, place)
        start = place + _HEADER.size
        place = start + length
        body = content[start:place]
        if len(body) < length or zlib.crc32(body, zlib.crc32(_REST.pack(length, kind))) != checksum:
            return
        yield kind, body, place


def _ranges(groups: Sequence[EventGroup]) -> Iterator[tuple[int, int]]:
    """The groups' tickets as ranges, both ends included."""
    first = last = groups[0].ticket
    for group in groups[1:]:
        if group.ticket != last + 1:
            yield first, last
            first = group.ticket
        last = group.ticket
    yield first, last
