"""Stops the query if too many records are dead letters: the cause is then likely in this platform."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from gamelake.model.errors import DeadLetterFloodError


@dataclass(frozen=True, slots=True)
class FloodLimit:
    """The limit beyond which dead letters count as a flood.

    Attributes:
        share: the largest share of dead letters among the last records, from 0 to 1.
        records: the number of last records.
    """

    share: float = 0.5
    records: int = 10_000


class FloodBreaker:
    """Counts the records and dead letters of the newest batches; these have `limit.records` records in total."""

    def __init__(self, limit: FloodLimit) -> None:
        self._limit = limit
        self._batches: deque[tuple[int, int]] = deque()

    def check(self, records: int, dead_letters: Mapping[str, int]) -> None:
        """Reject a batch that makes a flood.

        Args:
            records: the number of records of the batch.
            dead_letters: the number of dead letters among them, by reason.

        Raises:
            DeadLetterFloodError: nothing of the batch may be committed.
        """
        seen = records + sum(batch[0] for batch in self._batches)
        bad = sum(dead_letters.values()) + sum(batch[1] for batch in self._batches)
        if seen >= self._limit.records and bad > self._limit.share * seen and dead_letters:
            raise DeadLetterFloodError(
                f"{bad} of the last {seen} records are bad, more than a share of {self._limit.share}: the batch is not "
                f"committed. Its reasons: {_most_frequent(dead_letters)}. Repair the cause and restart, or raise "
                "GAMELAKE_FLOOD_SHARE to write them all to the dead letters"
            )

    def count(self, records: int, dead_letters: int) -> None:
        """Add a batch that was accepted."""
        self._batches.append((records, dead_letters))
        while sum(batch[0] for batch in self._batches) - self._batches[0][0] >= self._limit.records:
            self._batches.popleft()


def _most_frequent(dead_letters: Mapping[str, int]) -> str:
    """Format the reasons with their counts, the most frequent first."""
    ordered = sorted(dead_letters.items(), key=lambda counted: counted[1], reverse=True)
    return ", ".join(f"{reason} {count}" for reason, count in ordered)
