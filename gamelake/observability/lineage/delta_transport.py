"""The destination of OpenLineage's client: the table of lineage events, and a file if the options name one.

The client merges OPENLINEAGE__TRANSPORT__TRANSPORTS__... variables into what stands here, so that a person can have the
events sent to another service as well.
"""

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import attr
import pyarrow as pa
from openlineage.client.client import Event, OpenLineageClient
from openlineage.client.event_v2 import set_producer
from openlineage.client.serde import Serde
from openlineage.client.transport import Config, Transport

from gamelake.delta.appends import BatchTransaction
from gamelake.delta.columns import MICROSECONDS_UTC, delta_schema_json
from gamelake.delta.data_files import write_rows
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import DeltaTables
from gamelake.model.naming import LINEAGE_EVENTS
from gamelake.objects.store import Store
from gamelake.observability.lineage.datasets import PRODUCER
from gamelake.observability.lineage.recorded import decode, names

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
    """Appends events; `writer` is the name of the writer, and no two writers may share one."""

    store: Store
    writer: str
    _waiting: dict[tuple[str, str], EventRow] = field(default_factory=dict)
    _commits: int = 0

    def add(self, row: EventRow) -> None:
        """Keep an event until the next flush, in the place of an older one with the same content."""
        self._waiting[row.run_id, row.event_type] = row

    def flush(self) -> None:
        """Commit what was added, if anything was; what could not be committed waits for the next time."""
        if not self._waiting:
            return
        rows = list(self._waiting.values())
        columns = {name: [_value(row, name) for row in rows] for name in EVENTS_SCHEMA.names}
        file = write_rows(self.store, LINEAGE_EVENTS, pa.table(columns, EVENTS_SCHEMA), {}, frozenset({"event"}))
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


@attr.define
class DeltaConfig(Config):
    """The table that a `DeltaTransport` adds to."""

    table: EventTable

    @classmethod
    def from_dict(cls, params: dict[str, Any]) -> Self:
        """Take the table that the configuration of the client has opened."""
        return cls(params["table"])


class DeltaTransport(Transport):
    """Adds each event to a table; its holder commits several events at once."""

    kind = "gamelake_delta"
    config_class = DeltaConfig

    def __init__(self, config: DeltaConfig) -> None:
        self._table = config.table

    def emit(self, event: Event) -> None:
        """Add an event of a run."""
        text = Serde.to_json(event)
        read = decode(text)
        self._table.add(
            EventRow(
                event_time=read.event_time,
                event_type=read.event_type,
                job=read.job.name,
                run_id=read.run.run_id,
                inputs=names(read.inputs),
                outputs=names(read.outputs),
                event=text,
            )
        )


def open_client(table: EventTable, file: Path | None) -> OpenLineageClient:
    """Open a client whose events go to the table, and to the file if there is one."""
    set_producer(PRODUCER)
    transports: dict[str, dict[str, object]] = {
        "table": {"type": f"{DeltaTransport.__module__}.{DeltaTransport.__name__}", "table": table}
    }
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        transports["file"] = {"type": "file", "log_file_path": str(file), "append": True}
    return OpenLineageClient(config={"transport": {"type": "composite", "transports": transports}})
