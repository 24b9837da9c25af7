"""Tables with lineage, and the events that were emitted."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from gamelake.model.naming import LINEAGE_EVENTS
from gamelake.model.options import LineageOptions
from gamelake.objects.store import Location
from gamelake.observability.lineage.emitter import lineage_emitter
from gamelake.observability.lineage.flow import Flow

_USUAL = LineageOptions()


def lake(folder: Path) -> Location:
    return Location(uri=f"file://{folder / 'lake'}")


def emit(location: Location, *flows: Flow, job: str = "kpis", options: LineageOptions = _USUAL) -> None:
    """Run a job that emits some flows."""
    with lineage_emitter(options, job, location) as job_lineage:
        job_lineage.emit(*flows)


def make_table(location: Location, path: str, *columns: str) -> None:
    """A table of texts; a second time it gets another version."""
    rows = pa.table({column: ["x"] for column in columns or ("a",)})
    write_deltalake(location.child(path), rows, mode="append")


def events(location: Location) -> list[dict[str, Any]]:
    """The whole events, oldest first."""
    rows = DeltaTable(location.child(LINEAGE_EVENTS)).to_pyarrow_table().sort_by("event_time")
    return [json.loads(text) for text in rows["event"].to_pylist()]


def types(location: Location) -> list[tuple[str, str]]:
    """The events by job and type, oldest first."""
    return [(event["job"]["name"], event["eventType"]) for event in events(location)]
