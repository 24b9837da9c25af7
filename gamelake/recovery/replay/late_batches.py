"""Waits for batches that don't know the events of a replay, and drops the events that they wrote from the replay.

A batch knows the events of every replay whose notice existed when the batch began. Spark writes a batch's offsets
before the batch begins. So batches without offsets will know the events, and a replay only waits for the others.
"""

import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import quote

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
from gamelake.objects.store import Store
from gamelake.scans.datasets import dataset
from gamelake.streaming.dedup.common_events import identified
from gamelake.streaming.driver.checkpoint import CheckpointFolder

log = event_logger(__name__)

_WAIT_SECONDS = 120
_POLL_SECONDS = 0.2
_GAME, _ID = "game_name", "event_id"


def await_begun_batches(store: Store) -> None:
    """Wait until all batches that have begun are in all their tables.

    Raises:
        TransientError: a batch has begun but is not completed, because its stream does not run.
    """
    for stream in streams_of(store):
        generations = Generations(store, stream).all()
        if generations:
            _await(store, generations[-1])


def _await(store: Store, generation: Generation) -> None:
    folder = CheckpointFolder(store, generation.checkpoint, generation.topic)
    batch = folder.begun()
    deadline = time.monotonic() + _WAIT_SECONDS
    while batch is not None and not (_is_in_all_tables(store, generation, batch) or folder.is_committed(batch)):
        if time.monotonic() > deadline:
            raise TransientError(
                f"batch {batch} of {generation.stream} has begun but is not completed; its stream does not run. Start "
                "the stream's job, which finishes the batch, and try again"
            )
        time.sleep(_POLL_SECONDS)


def _is_in_all_tables(store: Store, generation: Generation, batch: int) -> bool:
    manifest = Manifests(store, generation.stream).read(batch)
    return manifest is not None and all(_has(store, entry.table, generation.app_id, batch) for entry in manifest.tables)


def _has(store: Store, table: str, app_id: str, batch: int) -> bool:
    taken = open_table(store.location, table).transaction_version(app_id) if has_log(store, table) else None
    return taken is not None and taken >= batch


def without_late_events(store: Store, tables: DeltaTables, manifest: ReplayManifest) -> tuple[TableFiles, ...]:
    """Return a replay's files by table, without events that batches wrote since the replay read the tables.

    All batches that don't know the replay must be in the tables already. Tables that have the replay keep its files.
    """

    def rest(entry: TableFiles) -> TableFiles:
        has_events = game_of(entry.table) is not None or entry.table in (SILVER_EVENTS, QUARANTINE)
        if not has_events or tables.transaction_version(entry.table, manifest.transaction.app_id) is not None:
            return entry
        return _without(store, entry, manifest.versions.get(entry.table))

    return tuple(entry for entry in map(rest, manifest.tables) if entry.files)


def _without(store: Store, entry: TableFiles, version: int | None) -> TableFiles:
    days = {file.partition.get(EVENT_DATE) for file in entry.files}
    new = [file for file in _new_files(store, entry.table, version) if file.partition.get(EVENT_DATE) in days]
    if not new:
        return entry
    # No sender knows this seed: a sender could craft event ids that collide, and so have events dropped.
    late, identities = KnownEvents(ANY_TIME), Identities(uuid.uuid4().hex)
    schema = schema_of(open_table(store.location, entry.table))
    for rows in _rows(store, entry.table, schema, new):
        late.add(identified(entry.table, rows, identities)[0])
    files = tuple(_files_without(store, entry, late, identities))
    if files != entry.files:
        rows_left = sum(file.rows for file in files)
        log.info("replayed_events_left_out", table=entry.table, rows=entry.rows - rows_left)
    return msgspec.structs.replace(entry, files=files)


def _new_files(store: Store, table: str, version: int | None) -> list[FileEntry]:
    """List the files that a table did not have at a version, including files that maintenance has rewritten."""
    if not has_log(store, table):
        return []
    handle = open_table(store.location, table)
    if handle.version() == version:
        return []
    try:
        before = (
            set() if version is None else {file.path for file in live_files(open_table(store.location, table, version))}
        )
    except DeltaError:  # log cleanup has deleted the version: all files may be new
        before = set()
    return [file for file in live_files(handle) if file.path not in before]


def _files_without(store: Store, entry: TableFiles, late: KnownEvents, identities: Identities) -> Iterator[DataFile]:
    """Yield the files of a replay; files with late events are written again without these."""
    for file in entry.files:
        [rows] = _rows(store, entry.table, columns_of(entry), [FileEntry(quote(file.path), file.size, file.partition)])
        events, positions = identified(entry.table, rows, identities)
        is_late = np.zeros(len(rows), np.bool_)
        is_late[positions] = late.have(events)
        if not is_late.any():
            yield file
        elif not is_late.all():
            content = store.require(f"{entry.table}/{file.path}", "a replay has just written it")
            kept = pq.read_table(pa.BufferReader(content)).filter(pa.array(~is_late))
            yield write_rows(store, entry.table, kept, file.partition)


def _rows(store: Store, table: str, schema: pa.Schema, files: Sequence[FileEntry]) -> Iterable[pa.Table]:
    """Read the columns that identify the events of files, file by file."""
    columns = [name for name in (_GAME, _ID) if name in schema.names]
    return (dataset(store.location, table, schema, [file]).to_table(columns=columns).combine_chunks() for file in files)
