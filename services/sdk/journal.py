"""The buffer's file: what is handed over and what is settled, one record behind the other, until all is settled.

    record = crc32 of the rest (4 bytes) + length of the body (4) + kind (1) + body; little-endian

A process may die in the middle of a record: whatever follows the last whole one is cut off. The file outlives the
process, not a power cut: nothing is forced to the disk.
"""

import fcntl
import logging
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from .batches import Form, Parcel
from .errors import BufferFileError

log = logging.getLogger(__name__)

_MAGIC = b"GLSDK\x00\x00\x01"
_HEADER, _REST = struct.Struct("<IIB"), struct.Struct("<IB")
_HANDED_OVER, _SETTLED = 1, 2
_PARCEL, _TICKETS = struct.Struct("<QBI"), struct.Struct("<QQ")
# What is settled is cut off when it is more than what is not, but not for every few events.
_LEAST_TO_CUT = 2**20


class Journal:
    """A file that one client at a time has open; only its owner may read it, since events say who a person is.

    Raises:
        BufferFileError: it can't be read or written, is something else, or another client has it.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            self._descriptor = _opened(file)
            content = file.read_bytes()
        except OSError as error:
            raise BufferFileError(f"{file}: {error.strerror}") from error
        if content[: len(_MAGIC)] != _MAGIC[: len(content)]:
            os.close(self._descriptor)
            raise BufferFileError(f"{file} is not a buffer's file")
        self._size = 0
        self._waiting = self._read(content)
        self._live = sum(_PARCEL.size + len(parcel.payload) for parcel in self._waiting.values())

    def waiting(self) -> Sequence[Parcel]:
        """What was not settled when the file was opened, in its order."""
        return tuple(self._waiting.values())

    def hand_over(self, parcel: Parcel) -> None:
        """Note a parcel.

        Raises:
            BufferFileError: it could not be written, and nothing of it is in the file.
        """
        body = _PARCEL.pack(parcel.ticket, parcel.form, parcel.count) + parcel.payload
        self._append(_record(_HANDED_OVER, body))
        self._waiting[parcel.ticket] = parcel
        self._live += len(body)

    def settle(self, parcels: Sequence[Parcel]) -> None:
        """Note that parcels are settled, and cut off what is no longer needed.

        Raises:
            BufferFileError: it could not be written; after a restart the parcels would be sent again.
        """
        for parcel in parcels:
            if self._waiting.pop(parcel.ticket, None) is not None:
                self._live -= _PARCEL.size + len(parcel.payload)
        if not self._waiting:
            self._cut(len(_MAGIC))
        elif self._size > 2 * self._live + _LEAST_TO_CUT:
            self._write_anew()
        else:
            settled = (_TICKETS.pack(first, last) for first, last in _ranges(parcels))
            self._append(b"".join(_record(_SETTLED, body) for body in settled))

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._descriptor)

    def _read(self, content: bytes) -> dict[int, Parcel]:
        found: dict[int, Parcel] = {}
        end = len(_MAGIC)
        for kind, body, behind in _records(content):
            end = behind
            if kind == _HANDED_OVER:
                ticket, form, count = _PARCEL.unpack_from(body)
                found[ticket] = Parcel(ticket, Form(form), count, body[_PARCEL.size :])
            else:
                first, last = _TICKETS.unpack(body)
                for ticket in range(first, last + 1):
                    found.pop(ticket, None)
        if end < len(content):
            log.warning("%s: %d bytes behind the last whole record were cut off", self._file, len(content) - end)
        if len(content) < len(_MAGIC):
            self._append(_MAGIC[len(content) :])
        self._cut(end)
        return found

    def _append(self, written: bytes) -> None:
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
        # A half record would hide all that follow it.
        with suppress(OSError):
            os.ftruncate(self._descriptor, self._size)

    def _cut(self, size: int) -> None:
        try:
            os.ftruncate(self._descriptor, size)
        except OSError as error:
            raise BufferFileError(f"{self._file}: {error.strerror}") from error
        self._size = size

    def _write_anew(self) -> None:
        """Replace the file by one that has only what waits."""
        bodies = (_PARCEL.pack(each.ticket, each.form, each.count) + each.payload for each in self._waiting.values())
        written = _MAGIC + b"".join(_record(_HANDED_OVER, body) for body in bodies)
        new = self._file.with_name(f"{self._file.name}.new")
        try:
            new.unlink(missing_ok=True)
            descriptor = _opened(new)
            new.write_bytes(written)
            new.replace(self._file)
        except OSError as error:
            raise BufferFileError(f"{self._file}: {error.strerror}") from error
        os.close(self._descriptor)
        self._descriptor, self._size = descriptor, len(written)


def _opened(file: Path) -> int:
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise BufferFileError(f"{file}: another client has it") from error
    # Its last owner may have replaced it between the two calls above.
    if os.fstat(descriptor).st_ino != file.stat().st_ino:
        os.close(descriptor)
        raise BufferFileError(f"{file}: another client has replaced it just now")
    return descriptor


def _record(kind: int, body: bytes) -> bytes:
    rest = _REST.pack(len(body), kind)
    return _HEADER.pack(zlib.crc32(body, zlib.crc32(rest)), len(body), kind) + body


def _records(content: bytes) -> Iterator[tuple[int, bytes, int]]:
    """The whole records from the start, each with the place behind it."""
    place = len(_MAGIC)
    while place + _HEADER.size <= len(content):
        checksum, length, kind = _HEADER.unpack_from(content, place)
        start = place + _HEADER.size
        place = start + length
        body = content[start:place]
        if len(body) < length or zlib.crc32(body, zlib.crc32(_REST.pack(length, kind))) != checksum:
            return
        yield kind, body, place


def _ranges(parcels: Sequence[Parcel]) -> Iterator[tuple[int, int]]:
    """The tickets as ranges, both ends included."""
    first = last = parcels[0].ticket
    for parcel in parcels[1:]:
        if parcel.ticket != last + 1:
            yield first, last
            first = parcel.ticket
        last = parcel.ticket
    yield first, last
