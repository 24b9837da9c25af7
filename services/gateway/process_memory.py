"""The memory of a process that Python and the C library keep: less of both."""

import ctypes
import gc
import sys

_OBJECTS_BETWEEN_COLLECTIONS = 20_000

# Options of mallopt(3).
_ARENA_MAX, _TRIM_THRESHOLD, _MMAP_THRESHOLD = -8, -1, -3
_ARENAS = 2
_TRIM_BYTES, _MMAP_BYTES = 2**20, 2**18


def reduce_garbage_collection() -> None:
    """Exclude the objects of the start from collections, and collect less often: events have no cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, 20, 50)


def limit_retained_memory() -> None:
    """Make the C library return free memory to the system: few arenas, trimmed early.

    By default each thread keeps the memory that it once used: 50 MiB after an outage of Kafka. No effect where the C
    library has no mallopt. Source: mallopt(3).
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_ARENA_MAX, _ARENAS)
        mallopt(_TRIM_THRESHOLD, _TRIM_BYTES)
        mallopt(_MMAP_THRESHOLD, _MMAP_BYTES)
