"""What the fan-out tells of its batches, to whoever wants to know."""

from collections.abc import Sequence
from typing import Protocol

from gamelake.lake.manifest import BatchManifest


class BatchObserver(Protocol):
    """Is called in the middle of a batch: it must be quick, and must not raise."""

    def batch_committed(self, manifest: BatchManifest, decide_seconds: float, commit_seconds: float) -> None:
        """Every table has the batch; after a crash that may be told twice of one batch, by two processes."""

    def commit_failed(self) -> None:
        """A commit of one table ended in an error; the batch ends with it."""


class Unobserved:
    """Nobody wants to know."""

    def batch_committed(self, manifest: BatchManifest, decide_seconds: float, commit_seconds: float) -> None:
        """Do nothing."""

    def commit_failed(self) -> None:
        """Do nothing."""


class Several:
    """Passes on what it is told."""

    def __init__(self, observers: Sequence[BatchObserver]) -> None:
        self._observers = observers

    def batch_committed(self, manifest: BatchManifest, decide_seconds: float, commit_seconds: float) -> None:
        """Tell everyone."""
        for each in self._observers:
            each.batch_committed(manifest, decide_seconds, commit_seconds)

    def commit_failed(self) -> None:
        """Tell everyone."""
        for each in self._observers:
            each.commit_failed()
