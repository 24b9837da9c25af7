"""Where OpenLineage's client sends events to: the table of lineage events, and a file if one is asked for.

The client merges OPENLINEAGE__TRANSPORT__TRANSPORTS__... variables into what stands here, so that a person can have the
events sent elsewhere as well.
"""

from pathlib import Path
from typing import Any, Self

import attr
from openlineage.client.client import Event, OpenLineageClient
from openlineage.client.event_v2 import set_producer
from openlineage.client.serde import Serde
from openlineage.client.transport import Config, Transport

from gamelake.lineage.facets import PRODUCER
from gamelake.lineage.recorded import decode, names
from gamelake.lineage.table import EventRow, EventTable


@attr.define
class DeltaConfig(Config):
    """The table that a `DeltaTransport` adds to."""

    table: EventTable

    @classmethod
    def from_dict(cls, params: dict[str, Any]) -> Self:
        """Take the table that whoever configures the client has opened."""
        return cls(params["table"])


class DeltaTransport(Transport):
    """Adds each event to a table; whoever holds that commits, several events at once."""

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
    """A client whose events go to the table, and to the file if there is one."""
    set_producer(PRODUCER)
    transports: dict[str, dict[str, object]] = {
        "table": {"type": f"{DeltaTransport.__module__}.{DeltaTransport.__name__}", "table": table}
    }
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        transports["file"] = {"type": "file", "log_file_path": str(file), "append": True}
    return OpenLineageClient(config={"transport": {"type": "composite", "transports": transports}})
