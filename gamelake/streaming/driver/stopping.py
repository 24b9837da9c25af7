"""Stops a query between two batches, so that none is interrupted."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Event, Lock
from typing import Protocol

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

_TICK_SECONDS = 0.1
_MARK_SECONDS = 10


class StoppableBatches(Protocol):
    """A batch function that can be stopped between two batches.

    `run_until` enters `between_batches` on its own thread, while Spark calls the function on the thread of the query.
    It reads `failure` after the query has ended with an error.
    """

    @property
    def failure(self) -> Exception | None:
        """The error that ended the last batch; None if no batch has failed."""

    def between_batches(self) -> AbstractContextManager[None]:
        """Wait for the running batch, and start no other during the block."""


class BatchGate:
    """Admits one batch at a time, and none while the query is being stopped.

    The thread of the query enters `batch`, the thread that stops the query enters `between_batches`.
    """

    def __init__(self) -> None:
        self._running = Lock()
        self._stopping = Event()

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Run the block as a batch.

        Raises:
            InterruptedError: the query is stopping.
        """
        while not self._running.acquire(timeout=_TICK_SECONDS):
            if self._stopping.is_set():
                # `between_batches` holds the lock and stops the query, which waits for this thread to end.
                raise InterruptedError("the query is stopping")
        try:
            yield
        finally:
            self._running.release()

    @contextmanager
    def between_batches(self, is_completed: Callable[[], bool]) -> Iterator[None]:
        """Wait until the running batch is done and completed; no batch starts during the block.

        Args:
            is_completed: returns True if Spark has completed the last batch; the wait ends after 10 seconds.
        """
        with self._running:
            self._stopping.set()
            deadline = time.monotonic() + _MARK_SECONDS
            while time.monotonic() < deadline and not is_completed():
                time.sleep(_TICK_SECONDS)
            yield


def stop_between_batches(query: StreamingQuery, body: StoppableBatches) -> None:
    """Stop a query between two batches without its log messages: the interruption of its thread is not an error."""
    with body.between_batches():
        SparkSession.active().sparkContext.setLogLevel("OFF")
        logging.getLogger("py4j").setLevel(logging.CRITICAL)
        query.stop()
