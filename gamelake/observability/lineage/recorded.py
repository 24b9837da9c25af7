"""Lineage events as they were recorded: the part of OpenLineage's JSON that is shown."""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

import msgspec
from deltalake.exceptions import TableNotFoundError

from gamelake.delta.tables import open_table
from gamelake.model.naming import LINEAGE_EVENTS
from gamelake.objects.store import Store

TOPICS = "topic"


class Origin(msgspec.Struct, frozen=True):
    """The influence of a column on another one."""

    type: str = ""
    subtype: str = ""


class OriginColumn(msgspec.Struct, frozen=True):
    """A column that bears on another one, by the name that OpenLineage has for its dataset."""

    namespace: str
    name: str
    field: str
    transformations: tuple[Origin, ...] = ()


class Derived(msgspec.Struct, frozen=True, rename="camel"):
    """A source of a column."""

    input_fields: tuple[OriginColumn, ...]
    transformation_description: str = ""


class ColumnLineage(msgspec.Struct, frozen=True):
    """The sources of each column."""

    fields: dict[str, Derived]


class RecordedColumn(msgspec.Struct, frozen=True):
    """One column."""

    name: str
    type: str = ""
    description: str = ""


class Columns(msgspec.Struct, frozen=True):
    """A dataset's columns."""

    fields: tuple[RecordedColumn, ...] = ()


class Version(msgspec.Struct, frozen=True, rename="camel"):
    """A dataset's version."""

    dataset_version: str


class Text(msgspec.Struct, frozen=True):
    """A text that a person wrote."""

    description: str


class Schema(msgspec.Struct, frozen=True):
    """A Protobuf schema."""

    id: int
    subject: str = ""
    version: int | None = None


class Schemas(msgspec.Struct, frozen=True):
    """The Protobuf schemas that a dataset's rows came in."""

    schemas: tuple[Schema, ...]


class Name(msgspec.Struct, frozen=True):
    """Another name of a dataset."""

    namespace: str
    name: str
    type: str


class RecordedNames(msgspec.Struct, frozen=True):
    """The other names of a dataset."""

    identifiers: tuple[Name, ...]


class DatasetFacets(msgspec.Struct, frozen=True):
    """The facets of a dataset."""

    schema: Columns = Columns()
    version: Version | None = None
    documentation: Text | None = None
    symlinks: RecordedNames = RecordedNames(())
    protobuf: Schemas = msgspec.field(default=Schemas(()), name="gamelake_protobuf")
    column_lineage: ColumnLineage = msgspec.field(default=ColumnLineage({}), name="columnLineage")


class Dataset(msgspec.Struct, frozen=True):
    """A topic or a table at the time of an event."""

    namespace: str
    name: str
    facets: DatasetFacets = DatasetFacets()

    @property
    def known_as(self) -> str:
        """The name that people know it by: a table's path inside the lakehouse, a topic's name under `topic/`."""
        paths = [each.name for each in self.facets.symlinks.identifiers if each.type == "TABLE"]
        if paths:
            return paths[0]
        return f"{TOPICS}/{self.name}" if self.namespace.startswith("kafka:") else f"{self.namespace}/{self.name}"


class RecordedQuery(msgspec.Struct, frozen=True):
    """A job's SQL, or a run's streaming query."""

    query: str


class JobType(msgspec.Struct, frozen=True, rename="camel"):
    """The kind of a job."""

    processing_type: str


class JobFacets(msgspec.Struct, frozen=True, rename="camel"):
    """The facets of a job."""

    documentation: Text | None = None
    sql: RecordedQuery | None = None
    job_type: JobType | None = None


class Job(msgspec.Struct, frozen=True):
    """A job."""

    namespace: str
    name: str
    facets: JobFacets = JobFacets()


class Parent(msgspec.Struct, frozen=True):
    """The run that a run is a part of."""

    job: Job


class RunFacets(msgspec.Struct, frozen=True):
    """The facets of a run."""

    parent: Parent | None = None
    query: RecordedQuery | None = msgspec.field(default=None, name="gamelake_query")


class RecordedRun(msgspec.Struct, frozen=True, rename={"run_id": "runId"}):
    """A run of a job."""

    run_id: str
    facets: RunFacets = RunFacets()


class RecordedEvent(msgspec.Struct, frozen=True, rename="camel"):
    """An event of a job about one of its runs."""

    event_time: datetime
    event_type: str
    run: RecordedRun
    job: Job
    inputs: tuple[Dataset, ...] = ()
    outputs: tuple[Dataset, ...] = ()


def names(datasets: Iterable[Dataset]) -> tuple[str, ...]:
    """Return the names that people know datasets by, sorted."""
    return tuple(sorted(each.known_as for each in datasets))


def decode(text: str | bytes) -> RecordedEvent:
    """Read one event.

    Raises:
        msgspec.ValidationError: it is not an OpenLineage event of a run.
    """
    return msgspec.json.decode(text, type=RecordedEvent)


_KEYS = ["event_time", "job", "inputs", "outputs"]


def recorded(store: Store) -> list[RecordedEvent]:
    """Return the events of a lakehouse, oldest first; none if there are none yet."""
    try:
        handle = open_table(store.location, LINEAGE_EVENTS)
    except TableNotFoundError:
        return []
    rows = handle.to_pyarrow_table(columns=[*_KEYS, "event"]).sort_by("event_time")
    newest: dict[tuple[str, str, str], int] = {}
    # A job that runs for a year has emitted ten thousand events; all of them may be large, and are not parsed.
    for place, row in enumerate(rows.select(_KEYS).to_pylist()):
        newest |= {(row["job"], side, name): place for side in ("inputs", "outputs") for name in row[side] or ()}
        newest[row["job"], "", ""] = place
    return [decode(text) for text in rows["event"].take(sorted(set(newest.values()))).to_pylist()]


def recorded_in(file: Path) -> list[RecordedEvent]:
    """Return the events of a file, oldest first."""
    events = [decode(line) for line in file.read_bytes().splitlines() if line]
    newest = {(event.job.name, names(event.inputs), names(event.outputs)): event for event in events}
    return sorted(newest.values(), key=lambda event: event.event_time)
