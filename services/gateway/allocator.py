"""Has the C library give memory back that a crowd of requests has once taken.

Source: mallopt(3).
"""

import ctypes
import sys

_ARENA_MAX, _TRIM_THRESHOLD, _MMAP_THRESHOLD = -8, -1, -3
_ARENAS = 2
_TRIM_BYTES, _MMAP_BYTES = 2**20, 2**18


def give_memory_back() -> None:
    """Few arenas, whose free ends are returned at once; where the C library is another one, nothing happens.

    Else each thread keeps what it ever had: some 50 MiB after an outage of Kafka.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_ARENA_MAX, _ARENAS)
        mallopt(_TRIM_THRESHOLD, _TRIM_BYTES)
        mallopt(_MMAP_THRESHOLD, _MMAP_BYTES)
