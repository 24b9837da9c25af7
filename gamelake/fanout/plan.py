"""What the driver tells every task of a batch."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from gamelake.contracts.games import GamesContract
from gamelake.lake.store import Location
from gamelake.wire.schemas import SchemaWait

MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkLimits:
    """How much a task gathers before it writes files: more means fewer files, less means less memory."""

    records: int = 500_000
    value_bytes: int = 256 * MIB


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
