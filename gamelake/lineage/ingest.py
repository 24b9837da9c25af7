"""What the fan-out's query tells of its lineage: one topic in, every table that a batch reaches out."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from gamelake.lake.manifest import BatchManifest, TableFiles
from gamelake.lineage.flow import Flow, Kind, Place, Table, Topic
from gamelake.lineage.telling import Tells
from gamelake.naming import BRONZE_EVENTS
from gamelake.telemetry.harmless import harmless

_DESCRIPTION = "Reads the event topic and fans it out into bronze, one silver table per game, and the dead letters."


@dataclass(slots=True)
class IngestLineage:
    """Is told of a query's batches, as `BatchObserver` says, and of the last ones of the run before."""

    tells: Tells
    topic: Topic
    query: str
    kind: Kind
    _written: dict[str, Place] = field(default_factory=dict)

    def begin(self, recent: Iterable[BatchManifest]) -> None:
        """Tell of what the stream's last batches wrote."""
        for manifest in recent:
            self._take(manifest)
        self.tells.tell(self._flow())

    @harmless
    def batch_committed(self, manifest: BatchManifest, decide_seconds: float, commit_seconds: float) -> None:
        """Tell of what is new in the batch: a table, columns, a schema."""
        if self._take(manifest):
            self.tells.tell(self._flow())

    def commit_failed(self) -> None:
        """Do nothing: the batch is tried again."""

    def _take(self, manifest: BatchManifest) -> bool:
        news = [place for entry in manifest.tables if (place := self._place(entry)) != self._written.get(entry.table)]
        self._written |= {place.what.path: place for place in news if isinstance(place.what, Table)}
        return bool(news)

    def _place(self, entry: TableFiles) -> Place:
        known = self._written.get(entry.table)
        ids = frozenset(entry.schema_ids) | (known.schema_ids if known else frozenset())
        return Place(what=Table(entry.table), schema_ids=ids, layout=entry.schema)

    def _flow(self) -> Flow:
        read = frozenset[int]().union(*(place.schema_ids for place in self._written.values()))
        bronze = Place(what=Table(BRONZE_EVENTS), schema_ids=read, layout="")
        outputs = {**self._written, **({BRONZE_EVENTS: bronze} if BRONZE_EVENTS in self._written else {})}
        return Flow(
            job="ingest_events",
            description=_DESCRIPTION,
            kind=self.kind,
            query=self.query,
            inputs=(Place(what=self.topic, schema_ids=read),),
            outputs=tuple(outputs[path] for path in sorted(outputs)),
        )
