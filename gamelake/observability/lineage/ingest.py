"""The lineage of the fan-out's queries: a topic, and files, in; every table that a batch reaches out."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from gamelake.delta.table_files import TableFiles
from gamelake.ledger.manifests import BatchManifest
from gamelake.model.errors import GamelakeError
from gamelake.model.logs import event_logger
from gamelake.model.naming import BRONZE_EVENTS
from gamelake.model.observers import harmless
from gamelake.observability.lineage.emitter import Emitter
from gamelake.observability.lineage.flow import (
    FilesDataset,
    Flow,
    FlowEnd,
    RunKind,
    SchemaVersion,
    TableDataset,
    TopicDataset,
)
from gamelake.streaming.driver.observers import BatchObserver


@dataclass(frozen=True, slots=True)
class IngestSource:
    """A job that fans events out, and what it reads."""

    name: str
    description: str
    reads: tuple[TopicDataset | FilesDataset, ...]


def from_kafka(topic: TopicDataset) -> IngestSource:
    """Return the job that reads the topic of events."""
    description = "Reads the event topic and fans it out into bronze, one silver table per game, and the dead letters."
    return IngestSource("ingest_events", description, (topic,))


def from_files(notifications: TopicDataset, landing: FilesDataset) -> IngestSource:
    """Return the job that reads the files that notifications name."""
    description = "Reads the files that notifications name, into the tables that Kafka's events are in."
    return IngestSource("ingest_files", description, (notifications, landing))


@dataclass(slots=True)
class IngestLineage(BatchObserver):
    """Observes a query's batches (`BatchObserver`), and the last ones of the run before."""

    emitter: Emitter
    job: IngestSource
    query: str
    kind: RunKind
    _written: dict[str, FlowEnd] = field(default_factory=dict)

    def begin(self, recent: Iterable[BatchManifest]) -> None:
        """Emit what the stream's last batches wrote."""
        for manifest in recent:
            self._take(manifest)
        self.emitter.emit(self._flow())

    @harmless
    def batch_committed(self, manifest: BatchManifest, decide_seconds: float, commit_seconds: float) -> None:
        """Emit what is new in the batch: a table, columns, a schema."""
        if self._take(manifest):
            self.emitter.emit(self._flow())

    def _take(self, manifest: BatchManifest) -> bool:
        changed = [
            place for entry in manifest.tables if (place := self._place(entry)) != self._written.get(entry.table)
        ]
        self._written |= {place.what.path: place for place in changed if isinstance(place.what, TableDataset)}
        return bool(changed)

    def _place(self, entry: TableFiles) -> FlowEnd:
        known = self._written.get(entry.table)
        ids = frozenset(entry.schema_ids) | (known.schema_ids if known else frozenset())
        return FlowEnd(what=TableDataset(entry.table), schema_ids=ids, layout=entry.schema)

    def _flow(self) -> Flow:
        read = frozenset[int]().union(*(place.schema_ids for place in self._written.values()))
        bronze = FlowEnd(what=TableDataset(BRONZE_EVENTS), schema_ids=read, layout="")
        outputs = {**self._written, **({BRONZE_EVENTS: bronze} if BRONZE_EVENTS in self._written else {})}
        return Flow(
            job=self.job.name,
            description=self.job.description,
            kind=self.kind,
            query=self.query,
            inputs=tuple(FlowEnd(what=each, schema_ids=read) for each in self.job.reads),
            outputs=tuple(outputs[path] for path in sorted(outputs)),
        )


log = event_logger(__name__)


class Versions(Protocol):
    """The registry, as the lineage uses it."""

    def versions(self, schema_id: int) -> list[tuple[str, int]]:
        """Return the subjects that have a schema, each with the schema's version in it."""


@dataclass(slots=True)
class RegisteredVersions:
    """The versions of one topic's schemas; if an id has several names, that of the topic is preferred."""

    registry: Versions
    topic: str
    _known: dict[int, SchemaVersion] = field(default_factory=dict)

    def __call__(self, ids: Collection[int]) -> Mapping[int, SchemaVersion]:
        """The versions by id; a registry that is silent is not waited for, and asked again another time."""
        try:
            for each in sorted(set(ids) - self._known.keys()):
                self._ask(each)
        except GamelakeError as error:
            log.info("schema_versions_unknown", error=error, action="lineage is emitted without them for now")
        return {each: self._known[each] for each in ids if each in self._known}

    def _ask(self, schema_id: int) -> None:
        found = [SchemaVersion(*each) for each in self.registry.versions(schema_id)]
        found.sort(key=lambda each: (each.subject != f"{self.topic}-value", each.subject, each.version))
        if found:
            self._known[schema_id] = found[0]
