"""The ingest job's log, read while it is written: one line for each batch."""

import re
from collections.abc import Collection
from datetime import datetime
from pathlib import Path

import msgspec

_BATCH = re.compile(rb" gamelake\.fanout\.batch batch (\{.*\})$")


class BatchLine(msgspec.Struct, frozen=True, kw_only=True):
    """What the job says of a batch once all tables have it."""

    batch: int
    records: int
    dead_letters: dict[str, int]
    duplicates: dict[str, int] = {}
    quarantined: dict[str, int] = {}
    dropped: dict[str, int] = {}
    tables: int
    files: int
    bytes: int
    decide_seconds: float
    commit_seconds: float
    committed_at: datetime

    @property
    def without_a_row(self) -> int:
        """Records that became no row of silver."""
        counted = (self.dead_letters, self.duplicates, self.quarantined, self.dropped)
        return sum(sum(each.values()) for each in counted)

    @property
    def seconds(self) -> float:
        """How long the batch took."""
        return self.decide_seconds + self.commit_seconds


def batch_of(line: bytes) -> BatchLine | None:
    """The batch that a line of the log tells of, None if it tells of something else.

    Raises:
        msgspec.ValidationError: the job and the demo do not agree on what is said of a batch.
    """
    found = _BATCH.search(line)
    return None if found is None else msgspec.json.decode(found[1], type=BatchLine)


class JobLog:
    """Follows the log from its present end.

    Args:
        path: the log, which need not be there yet.
        decided: batches that were decided before; the job tells of the last of them again when it finishes it.
    """

    def __init__(self, path: Path, decided: Collection[int]) -> None:
        self._path = path
        self._decided = frozenset(decided)
        self._position = path.stat().st_size if path.exists() else 0
        self._begun = b""

    def new_batches(self) -> list[BatchLine]:
        """The batches of which the log tells since the last call."""
        with self._path.open("rb") as log:
            log.seek(self._position)
            added = log.read()
        self._position += len(added)
        *lines, self._begun = (self._begun + added).split(b"\n")
        told = [batch for line in lines if (batch := batch_of(line)) is not None]
        return [batch for batch in told if batch.batch not in self._decided]
