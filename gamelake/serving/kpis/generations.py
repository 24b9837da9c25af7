"""The generations of the KPI query: one checkpoint each, and a name under which its tables know its commits.

A checkpoint that is lost, or that a person gives up (`--rebuild`), begins a new generation, which counts silver from
its beginning; the rows of former ones are taken out of each table by the new one's first commit.
"""

import uuid
from datetime import UTC, datetime

import msgspec

from gamelake.model.errors import CheckpointError, DataLossError, StartupError
from gamelake.model.logs import event_logger
from gamelake.model.naming import SILVER_EVENTS
from gamelake.storage.store import Store


class KpiTableError(StartupError):
    """A KPI table holds rows that the KPI query has not written."""


class SourceChangedError(DataLossError):
    """Rows that were counted are gone, or are back: what has been counted no longer follows from silver."""


class SourceFilesGoneError(SourceChangedError):
    """Files that were yet to be counted do not exist any more."""


class SourceRevisedError(SourceChangedError):
    """The KPIs are to be computed from the rows as they are now: some were restored, replayed, or erased unread."""


log = event_logger(__name__)

FOLDER = "_gamelake/kpis"


class KpiGeneration(msgspec.Struct, frozen=True, kw_only=True):
    """One generation: `source` is silver's table id, `partitions` the number of state stores, which never changes."""

    number: int
    app_id: str
    source: str
    partitions: int
    reason: str
    created_at: str

    @property
    def checkpoint(self) -> str:
        """The checkpoint's folder in the lakehouse."""
        return f"{FOLDER}/checkpoints/{self.number:06d}"


class KpiGenerations:
    """All generations, as the lakehouse records them; records are only ever added."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def all(self) -> list[KpiGeneration]:
        """The generations in order."""
        records = [self._store.get(path) or b"" for path in self._store.paths(f"{FOLDER}/generations")]
        return [msgspec.json.decode(record, type=KpiGeneration) for record in records]

    def current(self, source: str, partitions: int) -> KpiGeneration:
        """The generation to run, a new one where none is there or its checkpoint is gone.

        Raises:
            SourceChangedError: silver is another table than the one that was counted.
        """
        known = self.all()
        if not known:
            return self.add(source, partitions, "first start")
        last = known[-1]
        if last.source != source:
            raise SourceChangedError(
                f"{SILVER_EVENTS} was dropped and made again since its events were counted. To count those that it "
                "holds now, start once with --rebuild"
            )
        if self._store.get(f"{last.checkpoint}/metadata") is None and self._has_begun(last):
            log.warning("kpi_checkpoint_missing", path=last.checkpoint, action="counts all events again")
            return self.add(source, last.partitions, "the checkpoint was gone")
        return last

    def add(self, source: str, partitions: int, reason: str) -> KpiGeneration:
        """Begin a generation.

        Raises:
            CheckpointError: another process was faster.
        """
        generation = KpiGeneration(
            number=len(self.all()),
            app_id=f"kpis-{uuid.uuid4()}",
            source=source,
            partitions=partitions,
            reason=reason,
            created_at=datetime.now(UTC).isoformat(),
        )
        content = msgspec.json.format(msgspec.json.encode(generation))
        if not self._store.put_new(f"{FOLDER}/generations/{generation.number:06d}.json", content):
            raise CheckpointError("another process has just begun a generation of the KPI query; start again")
        return generation

    def _has_begun(self, generation: KpiGeneration) -> bool:
        return self._store.get(source_path(generation)) is not None


def source_path(generation: KpiGeneration) -> str:
    """Path of the record of the silver version up to which a generation has read the log."""
    return f"{FOLDER}/source/{generation.number:06d}.json"
