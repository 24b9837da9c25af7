"""Text columns from bytes, without a Python object per row."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

ByteRows: TypeAlias = npt.NDArray[np.uint8]

# Two hexadecimal digits per byte, read as one 16-bit number, so that one lookup writes both.
_HEX_PAIRS = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), dtype=np.uint16)
_UUID_GROUPS = ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))


def hex_digits(rows: ByteRows) -> ByteRows:
    """Return hexadecimal digits as ASCII: rows of n bytes become rows of 2n digits."""
    return _HEX_PAIRS[rows].view(np.uint8)


def fixed_width_text(rows: ByteRows) -> pa.StringArray:
    """Build a text column from rows of ASCII, shape (rows, width), uint8."""
    count, width = rows.shape
    offsets = np.arange(0, (count + 1) * width, width, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(rows)))


def hex_text(prefix: str, rows: ByteRows, digits: int) -> pa.StringArray:
    """Build texts of a prefix followed by the last hexadecimal digits of each row."""
    text = np.empty((len(rows), len(prefix) + digits), dtype=np.uint8)
    text[:, : len(prefix)] = np.frombuffer(prefix.encode(), dtype=np.uint8)
    text[:, len(prefix) :] = hex_digits(rows)[:, -digits:]
    return fixed_width_text(text)


def uuid_text(rows: ByteRows) -> pa.StringArray:
    """Build UUIDs of version 4 from 16 random bytes per row."""
    rows = rows.copy()
    rows[:, 6] = (rows[:, 6] & 0x0F) | 0x40
    rows[:, 8] = (rows[:, 8] & 0x3F) | 0x80
    digits = hex_digits(rows)
    text = np.full((len(rows), 36), ord("-"), dtype=np.uint8)
    for group, (start, stop) in enumerate(_UUID_GROUPS):
        text[:, start + group : stop + group] = digits[:, start:stop]
    return fixed_width_text(text)
