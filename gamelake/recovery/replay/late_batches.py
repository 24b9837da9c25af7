"""Waits for batches that don't know the events of a replay, and drops the events that they wrote from the replay.

A batch knows the events of every replay whose notice existed when the batch began. Spark writes a batch's offsets
before the batch begins. So batches without offsets will know the events, and a replay only waits for the others.
"""

import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError

from gamelake.delta.appends import columns_of, schema_of
from gamelake.delta.data_files import DataFile, write_rows
from gamelake.delta.listing import has_log
from gamelake.delta.log.codec import FileEntry, live_files
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import DeltaTables, open_table
from gamelake.layers.identity import Identities
from gamelake.layers.known_events import ANY_TIME, KnownEvents
from gamelake.layers.silver import EVENT_DATE
from gamelake.ledger.generations import Generation, Generations
from gamelake.ledger.manifests import Manifests
from gamelake.ledger.reconciliation import streams_of
from gamelake.ledger.replay_manifests import ReplayManifest
from gamelake.model.errors import TransientError
from gamelake.model.logs import event_logger
from gamelake.model.naming import QUARANTINE, SILVER_EVENTS, game_of
from gamelake.scans.datasets import dataset
from gamelake.streaming.dedup.common_events import identified
from gamelake.streaming.driver.checkpoint import CheckpointFolder

log = event_logger(__name__)

_WAIT_SECONDS = 120
_POLL_SECONDS = 0.2
_GAME, _ID = "game_name", "event_id"


@dataclass(frozen=True, slots=True)
class LateBatches:
    """Batches of all streams that may have begun before the notice of a replay.

    Attributes:
        tables: the tables of the lakehouse.
    """

    tables: DeltaTables

    def wait(self) -> None:
        """Wait until all batches that have begun are in all their tables.

        Raises:
            TransientError: a batch has begun but is not completed, because its stream does not run.
        """
        for stream in streams_of(self.tables.store):
            generations = Generations(self.tables.store, stream).all()
            if generations:
                self._await(generations[-1])

    def _await(self, generation: Generation) -> None:
        folder = CheckpointFolder(self.tables.store, generation.checkpoint, generation.topic)
        batch = folder.begun()
        deadline = time.monotonic() + _WAIT_SECONDS
        while batch is not None and not (self._is_in_all_tables(generation, batch) or folder.is_committed(batch)):
            if time.monotonic() > deadline:
                raise TransientError(
                    f"batch {batch} of {generation.stream} has begun but is not completed; its stream does not run. "
                    "Start the stream's job, which finishes the batch, and try again"
                )
            time.sleep(_POLL_SECONDS)

    def _is_in_all_tables(self, generation: Generation, batch: int) -> bool:
        manifest = Manifests(self.tables.store, generation.stream).read(batch)
        if manifest is None:
            return False
        taken = (self.tables.transaction_version(entry.table, generation.app_id) for entry in manifest.tables)
        return all(version is not None and version >= batch for version in taken)

    def left_out_of(self, manifest: ReplayManifest) -> ReplayManifest:
        """Return a replay's manifest without events that batches have written since the replay read the tables.

        All batches that don't know the replay must be in the tables already. Tables that have the replay keep its
        files.
        """
        rest = [self._rest(entry, manifest) for entry in manifest.tables]
        return msgspec.structs.replace(manifest, tables=tuple(entry for entry in rest if entry.files))

    def _rest(self, entry: TableFiles, manifest: ReplayManifest) -> TableFiles:
        has_events = game_of(entry.table) is not None or entry.table in (SILVER_EVENTS, QUARANTINE)
        if not has_events or self.tables.transaction_version(entry.table, manifest.transaction.app_id) is not None:
            return entry
        days = {file.partition.get(EVENT_DATE) for file in entry.files}
        files = self._new_files(entry.table, manifest.versions.get(entry.table))
        if not (new := [file for file in files if file.partition.get(EVENT_DATE) in days]):
            return entry
        # No sender knows this seed: a sender could craft event ids that collide, and so have events dropped.
        late, identities = KnownEvents(ANY_TIME), Identities(uuid.uuid4().hex)
        schema = schema_of(open_table(self.tables.store.location, entry.table))
        for rows in self._rows(entry.table, schema, new):
            late.add(identified(entry.table, rows, identities)[0])
        rest = msgspec.structs.replace(entry, files=tuple(self._files_without(entry, late, identities)))
        if rest.files != entry.files:
            log.info("replayed_events_left_out", table=entry.table, rows=entry.rows - rest.rows)
        return rest

    def _new_files(self, table: str, version: int | None) -> list[FileEntry]:
        """List the files that a table did not have at a version, including files that maintenance has rewritten."""
        store = self.tables.store
        if not has_log(store, table):
            return []
        handle, before = open_table(store.location, table), set[str]()
        if handle.version() == version:
            return []
        # If log cleanup has deleted the version, all files may be new.
        with suppress(DeltaError):
            if version is not None:
                before = {file.path for file in live_files(open_table(store.location, table, version))}
        return [file for file in live_files(handle) if file.path not in before]

    def _files_without(self, entry: TableFiles, late: KnownEvents, identities: Identities) -> Iterator[DataFile]:
        """Yield the files of a replay; files with late events are written again without these."""
        store, table = self.tables.store, entry.table
        for file in entry.files:
            [rows] = self._rows(table, columns_of(entry), [FileEntry.of(file)])
            events, positions = identified(table, rows, identities)
            is_late = np.zeros(len(rows), np.bool_)
            is_late[positions] = late.have(events)
            if not is_late.any():
                yield file
            elif not is_late.all():
                content = store.require(f"{table}/{file.path}", "a replay has just written it")
                kept = pq.read_table(pa.BufferReader(content)).filter(pa.array(~is_late))
                yield write_rows(store, table, kept, file.partition)

    def _rows(self, table: str, schema: pa.Schema, files: Sequence[FileEntry]) -> Iterator[pa.Table]:
        """Read the columns that identify the events of files, file by file."""
        columns, location = [name for name in (_GAME, _ID) if name in schema.names], self.tables.store.location
        for file in files:
            yield dataset(location, table, schema, [file]).to_table(columns=columns).combine_chunks()
