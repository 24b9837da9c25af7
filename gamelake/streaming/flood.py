"""The breaker that stops the query when bad records come in a flood: then the fault is ours, not theirs."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from gamelake.model.errors import DeadLetterFloodError


@dataclass(frozen=True, slots=True)
class FloodLimit:
    """More than this share of bad records among the last so many is a flood."""

    share: float = 0.5
    records: int = 10_000


class FloodBreaker:
    """Counts records and dead letters over the newest batches that together hold the limit's number of records."""

    def __init__(self, limit: FloodLimit) -> None:
        self._limit = limit
        self._batches: deque[tuple[int, int]] = deque()

    def check(self, records: int, dead_letters: Mapping[str, int]) -> None:
        """Refuse a batch that makes a flood: so many records, and how many of them are bad for which reason.

        Raises:
            DeadLetterFloodError: nothing of the batch may be committed.
        """
        seen = records + sum(batch[0] for batch in self._batches)
        bad = sum(dead_letters.values()) + sum(batch[1] for batch in self._batches)
        if seen >= self._limit.records and bad > self._limit.share * seen and dead_letters:
            raise DeadLetterFloodError(
                f"{bad} of the last {seen} records are bad, more than a share of {self._limit.share}: the batch is not "
                f"taken. Its reasons: {_most_frequent(dead_letters)}. Put the cause right and start again, or raise "
                "GAMELAKE_FLOOD_SHARE to set them all aside"
            )

    def count(self, records: int, dead_letters: int) -> None:
        """Remember a batch that was accepted."""
        self._batches.append((records, dead_letters))
        while sum(batch[0] for batch in self._batches) - self._batches[0][0] >= self._limit.records:
            self._batches.popleft()


def _most_frequent(dead_letters: Mapping[str, int]) -> str:
    """The reasons with their counts, the most frequent first."""
    ordered = sorted(dead_letters.items(), key=lambda counted: counted[1], reverse=True)
    return ", ".join(f"{reason} {count}" for reason, count in ordered)
