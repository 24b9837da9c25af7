"""Sends the lineage of flows through OpenLineage's client, which takes half a second to load: import it late."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from openlineage.client.client import OpenLineageClient
from openlineage.client.event_v2 import RunState

from gamelake.model.options import LineageOptions
from gamelake.objects.store import Location, Store
from gamelake.observability.lineage.datasets import Datasets
from gamelake.observability.lineage.delta_transport import EventTable, open_client
from gamelake.observability.lineage.events import EventMaker, Runs
from gamelake.observability.lineage.flow import Flow, SchemaVersions, TableDataset


@dataclass(frozen=True, slots=True)
class EventSender:
    """Sends events through OpenLineage's client; those of one call are one commit of the table."""

    client: OpenLineageClient
    table: EventTable
    maker: EventMaker

    @classmethod
    def of(cls, options: LineageOptions, program: str, location: Location, schemas: SchemaVersions) -> Self:
        """Open a sender for the runs of a program that has just started."""
        runs = Runs.of(program)
        table = EventTable(Store(location), runs.id(program))
        return cls(open_client(table, options.file), table, EventMaker(runs, Datasets(location, schemas)))

    def started(self, flows: Sequence[Flow]) -> None:
        """Send the first event of each job."""
        self._send(flows, RunState.START)

    def running(self, flows: Sequence[Flow]) -> None:
        """Send how each job stands now."""
        self._send(flows, RunState.RUNNING)

    def ended(self, flows: Sequence[Flow], error: str) -> None:
        """Send the last event of each job; `error` is empty if all went well."""
        self._send(flows, RunState.FAIL if error else RunState.COMPLETE, error)

    def lacks(self, flow: Flow) -> frozenset[str]:
        """Return the tables of a flow that don't exist yet."""
        places = (*flow.inputs, *flow.outputs)
        tables = [place.what.path for place in places if isinstance(place.what, TableDataset)]
        return frozenset(path for path in tables if not self.maker.datasets.has(path))

    def _send(self, flows: Sequence[Flow], state: RunState, error: str = "") -> None:
        maker = replace(self.maker, datasets=self.maker.datasets.now())
        for flow in flows:
            self.client.emit(maker.event(flow, state, error))
        self.table.flush()
