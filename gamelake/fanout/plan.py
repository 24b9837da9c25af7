"""What the driver tells every task of a batch."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import pyarrow as pa

from gamelake.contracts.games import GamesContract
from gamelake.lake.store import Location
from gamelake.naming import game_of
from gamelake.quality.checking import UNRULED, CheckedRules
from gamelake.wire.schemas import SchemaWait

MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkLimits:
    """How much a task gathers before it writes files: more means fewer files, less means less memory."""

    records: int = 500_000
    value_bytes: int = 256 * MIB


@dataclass(frozen=True, slots=True)
class KnownFile:
    """Where events of one Kafka partition stand that silver has: a file, from which byte on, how many; the newest."""

    path: str
    start: int
    events: int
    newest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupPlan:
    """What a task needs to find duplicates: whose they would be, and the folder for what it takes itself."""

    folder: str
    batch_id: int
    seed: str
    window_seconds: int
    known: Mapping[int, tuple[KnownFile, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TakenElsewhere:
    """Files with the identities of events that another stream has taken, and the seed that they were made with."""

    seed: str
    files: tuple[KnownFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlan:
    """Everything that a task needs besides its records; pickled into the job."""

    lakehouse: Location
    registry_url: str
    topic: str
    contract: GamesContract
    schemas: Mapping[str, pa.Schema] = field(default_factory=dict)
    unlisted_tables: frozenset[str] = frozenset()
    schema_wait: SchemaWait = field(default_factory=SchemaWait)
    chunk: ChunkLimits = field(default_factory=ChunkLimits)
    writer_threads: int = 2
    dedup: DedupPlan | None = None
    rules: CheckedRules = UNRULED
    elsewhere: tuple[TakenElsewhere, ...] = ()

    def for_tables(self, schemas: Mapping[str, pa.Schema]) -> Self:
        """The same plan, with the columns of the tables that are there."""
        games = {table: schema for table, schema in schemas.items() if game_of(table)}
        listed = {game.table for game in self.contract.games}
        return replace(self, schemas=games, unlisted_tables=frozenset(games.keys() - listed))
