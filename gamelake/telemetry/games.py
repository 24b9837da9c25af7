"""What the batches of late held: the games' shares of the records, and their newest events."""

from collections import deque
from datetime import datetime
from typing import Any

import msgspec

from gamelake.lake.manifest import BatchManifest, TableFiles
from gamelake.naming import BRONZE_EVENTS, game_of

_BATCHES = 100


class _Greatest(msgspec.Struct, frozen=True):
    """The greatest values of a file, of which two matter here; absent where the file has none."""

    event_time: Any = None
    kafka_timestamp: Any = None


class _Statistics(msgspec.Struct, frozen=True):
    """A file's statistics, as Delta has them."""

    maxValues: _Greatest = _Greatest()  # noqa: N815 # Delta's name


class Games:
    """The games by the batches that they were in."""

    def __init__(self) -> None:
        self._batches: deque[tuple[int, dict[str, int]]] = deque(maxlen=_BATCHES)
        self.last_event: dict[str, float] = {}

    def count(self, manifest: BatchManifest) -> None:
        """Take in a batch."""
        games = {game: entry for entry in manifest.tables if (game := game_of(entry.table))}
        self._batches.append((manifest.records, {game: entry.rows for game, entry in games.items()}))
        latest = newest_record(manifest)
        for game, entry in games.items():
            event = _greatest(entry, "event_time")
            if event is not None:
                # A device's clock may be ahead; nothing happens after Kafka has been told of it.
                event = event if latest is None else min(event, latest)
                self.last_event[game] = max(event, self.last_event.get(game, event))

    def share(self, game: str) -> float:
        """The game's share of the records of the last batches."""
        batches = list(self._batches)
        records = sum(batch for batch, _ in batches)
        return sum(rows.get(game, 0) for _, rows in batches) / records if records else 0.0


def newest_record(manifest: BatchManifest) -> float | None:
    """When Kafka took in the newest record of a batch, None if the batch does not tell."""
    bronze = next((entry for entry in manifest.tables if entry.table == BRONZE_EVENTS), None)
    return _greatest(bronze, "kafka_timestamp") if bronze else None


def _greatest(entry: TableFiles, column: str) -> float | None:
    bounds = [getattr(msgspec.json.decode(file.statistics, type=_Statistics).maxValues, column) for file in entry.files]
    moments = [datetime.fromisoformat(bound).timestamp() for bound in bounds if isinstance(bound, str)]
    return max(moments, default=None)
