"""Keeps objects that are costly to make in a worker process, for all tasks that the process runs.

A Spark worker runs the tasks of one job one after the other. So one object of each kind is usually enough: a decoder
with its compiled schemas, a connected consumer, the identities of ingested events.
"""

import os
from collections import defaultdict
from collections.abc import Callable, Hashable
from threading import RLock
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

# By process and kind. A forked process leaves its parent's objects alone: they have threads and connections.
_objects: defaultdict[tuple[int, type], dict[Hashable, "_Kept"]] = defaultdict(dict)
_lock = RLock()


class _Kept(NamedTuple):
    """An object, and how it is closed when it is dropped."""

    made: Any
    close: Callable[[Any], None]


def per_worker(
    kind: type[T], key: Hashable, make: Callable[[], T], most: int = 1, close: Callable[[T], None] = lambda made: None
) -> T:
    """Return this process's object of a kind for a key, and make it if the process does not have it.

    If a process has more than `most` objects of the kind, the one that was returned the longest time ago is dropped.
    The bound counts objects; an object that grows limits its own bytes.

    Args:
        kind: the class of the object.
        key: everything that `make` depends on.
        make: makes the object. If it raises an error, nothing is kept.
        most: the largest number of objects of the kind.
        close: closes the connections of a dropped object; no task may still use the object.
    """
    with _lock:
        objects = _objects[os.getpid(), kind]
        kept = objects.pop(key) if key in objects else _Kept(make(), close)
        # The last place of the dictionary is that of the newest use.
        objects[key] = kept
        while len(objects) > most:
            _drop(objects.pop(next(iter(objects))))
        made: T = kept.made
        return made


def forget_all() -> None:
    """Drop all objects of this process, which is then like a new worker."""
    with _lock:
        for process, kind in [*_objects]:
            if process == os.getpid():
                for kept in _objects.pop((process, kind)).values():
                    _drop(kept)


def _drop(kept: _Kept) -> None:
    kept.close(kept.made)
