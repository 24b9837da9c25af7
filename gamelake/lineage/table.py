"""The table of lineage events: each flush is one commit, made once however often it is tried."""

from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa

from gamelake.lake.appends import BatchTransaction
from gamelake.lake.columns import MICROSECONDS_UTC
from gamelake.lake.datafile import DataFile, encode_parquet, new_file_name
from gamelake.lake.manifest import TableFiles
from gamelake.lake.store import Store
from gamelake.lake.tables import DeltaTables, delta_schema_json
from gamelake.naming import LINEAGE_EVENTS

# What questions are asked by, then the whole event, as OpenLineage has it.
EVENTS_SCHEMA = pa.schema(
    [
        ("event_time", MICROSECONDS_UTC),
        ("event_type", pa.string()),
        ("job", pa.string()),
        ("run_id", pa.string()),
        ("inputs", pa.list_(pa.field("element", pa.string()))),
        ("outputs", pa.list_(pa.field("element", pa.string()))),
        ("event", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """One event; inputs and outputs by the names that people know them by."""

    event_time: datetime
    event_type: str
    job: str
    run_id: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    event: str


@dataclass(slots=True)
class EventTable:
    """Appends events; `writer` names who writes, and no two writers may share a name."""

    store: Store
    writer: str
    _waiting: dict[tuple[str, str], EventRow] = field(default_factory=dict)
    _commits: int = 0

    def add(self, row: EventRow) -> None:
        """Keep an event until the next flush, in the place of an older one that says no more."""
        self._waiting[row.run_id, row.event_type] = row

    def flush(self) -> None:
        """Commit what was added, if anything was; what could not be committed waits for the next time."""
        if not self._waiting:
            return
        rows = list(self._waiting.values())
        columns = {name: [_value(row, name) for row in rows] for name in EVENTS_SCHEMA.names}
        content, statistics = encode_parquet(pa.table(columns, EVENTS_SCHEMA), frozenset({"event"}))
        path = new_file_name("")
        self.store.put(f"{LINEAGE_EVENTS}/{path}", content.to_pybytes())
        file = DataFile(path=path, size=content.size, rows=len(rows), partition={}, statistics=statistics)
        entry = TableFiles(
            table=LINEAGE_EVENTS, partition_by=(), schema=delta_schema_json(EVENTS_SCHEMA), files=(file,)
        )
        with DeltaTables(self.store.location) as tables:
            tables.append(entry, BatchTransaction(f"lineage-{self.writer}", self._commits))
        self._commits += 1
        self._waiting.clear()


def _value(row: EventRow, name: str) -> object:
    value: object = getattr(row, name)
    return list(value) if isinstance(value, tuple) else value
