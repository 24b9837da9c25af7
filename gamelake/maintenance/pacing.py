"""Work that rests between its pieces, for whoever else needs the cores."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def paced(pieces: Iterable[Callable[[], T]], rest: float, wait: Callable[[float], object] = time.sleep) -> Iterator[T]:
    """Do one piece after the other.

    Args:
        pieces: what there is to do.
        rest: how many times as long as a piece took nothing is done after it: 3 leaves others three quarters of the
            time. A low priority is not enough: who uses idle cores only still shares memory and caches.
        wait: lets so many seconds pass.
    """
    for piece in pieces:
        started = time.perf_counter()
        done = piece()
        took = time.perf_counter() - started
        yield done
        wait(rest * took)
