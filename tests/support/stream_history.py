"""Batches of a stream: manifests, and commits to bronze, silver and a game's table."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from gamelake.delta.log.checkpoints import CHECKPOINT_EVERY
from gamelake.delta.tables import DeltaTables
from gamelake.ledger.generations import Generation, Generations
from gamelake.ledger.held_tables import stream_tables
from gamelake.ledger.manifests import BatchManifest, EventsFile, Manifests
from gamelake.objects.store import Store
from gamelake.scans.player_rows import PlayerTable
from tests.support.manifests import a_manifest, offsets_of
from tests.support.player_tables import BRONZE, SILVER, entry_of, rows_of, store_in

STREAM = "ingest_events"
ALL_GAMES = PlayerTable("silver/events", "gamer_id")
TABLES = (BRONZE, ALL_GAMES, SILVER)


@dataclass
class StreamHistory:
    """A lakehouse with one stream of some batches of two records each."""

    folder: Path
    batches: int = 0
    generations: int = 0
    _tables: DeltaTables = field(init=False)

    def __post_init__(self) -> None:
        """Begin the first generation."""
        self._tables = stream_tables(self.store.location)
        self.begin_generation()

    @property
    def store(self) -> Store:
        return store_in(self.folder)

    def begin_generation(self, at: datetime | None = None) -> Generation:
        generation = Generation(
            stream=STREAM, number=self.generations, query_id="query", topic="events", topic_id="t",
            first_batch=self.batches, reason="test", created_at=(at or datetime.now(UTC)).isoformat(),
        )  # fmt: skip
        Generations(self.store, STREAM).add(generation)
        self.store.put(f"{generation.checkpoint}/metadata", b'{"id": "query"}')
        self.generations += 1
        return generation

    def decide(self, players: list[str], events: tuple[EventsFile, ...] = ()) -> BatchManifest:
        """A batch that is decided and not committed yet."""
        first = 2 * self.batches
        manifest = a_manifest(
            stream=STREAM,
            generation=self.generations - 1,
            batch_id=self.batches,
            topic_id="t",
            written_at=datetime.now(UTC).isoformat(),
            events=events,
            offsets=(offsets_of(first, first + 1),),
            tables=tuple(entry_of(self.store, table, self._rows(table, players)) for table in TABLES),
        )
        self.batches += 1
        return Manifests(self.store, STREAM).settle(manifest)

    def _rows(self, table: PlayerTable, players: list[str]) -> pa.Table:
        rows = rows_of(table, players)
        if table is not BRONZE:
            return rows
        offsets = pa.array([2 * self.batches + number for number in range(len(rows))])
        partitions = pa.array([0] * len(rows))
        return rows.append_column("partition", partitions).append_column("offset", offsets)

    def commit(self, manifest: BatchManifest) -> None:
        """Commit a batch to its tables; a second time does nothing."""
        for entry in manifest.tables:
            self._tables.append(entry, manifest.transaction)
        if self.batches % CHECKPOINT_EVERY == 0:
            self._await_checkpoints()

    def _await_checkpoints(self) -> None:
        """A thread writes them during the batches, of the version that is the newest then."""
        with self._tables:
            pass
        self._tables = stream_tables(self.store.location)

    def take(self, count: int, players: tuple[str, str] = ("a" * 32, "b" * 32)) -> datetime:
        """Decide and commit some batches. Return the time after the last."""
        for _ in range(count):
            self.commit(self.decide(list(players)))
        return datetime.now(UTC)
