"""Decided batches and replays that a table can't take: their conflicting columns are dropped, and they are committed.

Two writers that decide at the same time can give a table one column with two types. The second one is decided and
can't be committed, so its stream holds the table back, and each later replay ends with IncompatibleSchemaError. Its
rows are written again without the values of that column, which remain in bronze.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from gamelake.model.errors import StoreError
from gamelake.storage.appends import BatchTransaction, columns_of
from gamelake.storage.columns import conflicts, merged
from gamelake.storage.data_files import DataFile, write_rows
from gamelake.storage.held_tables import HeldTables
from gamelake.storage.manifests import BatchManifest, Manifests, TableFiles
from gamelake.storage.reconciliation import streams_of
from gamelake.storage.replay_manifests import ReplayManifest, ReplayManifests
from gamelake.storage.rewrites import revision_lease
from gamelake.storage.settle_records import SettleRecords
from gamelake.storage.store import Store
from gamelake.storage.tables import DeltaTables, delta_schema_json


class StuckTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table that can't take a decision: of a batch or a replay, the columns that conflict, and the rows."""

    decision: str
    table: str
    columns: tuple[str, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class _Decision:
    """A decided batch or replay; `save` replaces its manifest by one with other files."""

    name: str
    tables: tuple[TableFiles, ...]
    transaction: BatchTransaction
    save: Callable[[tuple[TableFiles, ...]], None]


@dataclass(frozen=True, slots=True)
class StuckDecisions:
    """The newest batch of each stream, the batches that wait for a table, and the unfinished replays of a lakehouse."""

    store: Store
    tables: DeltaTables

    def dry_run(self) -> list[StuckTable]:
        """The tables that can't take a decision; changes nothing."""
        return [stuck for decision in self._decisions() for stuck in self._stuck(decision)]

    def release(self) -> list[StuckTable]:
        """Write the rows again without the conflicting columns, and commit them to the tables that could not take them.

        Until the manifest is replaced nothing has changed, so a run that was killed can be repeated.

        Raises:
            LeaseHeldError: a replay, restore or erasure runs.
        """
        found: list[StuckTable] = []
        with revision_lease(self.store):
            SettleRecords(self.store).follow()
            for decision in self._decisions():
                stuck = {each.table: each for each in self._stuck(decision)}
                if not stuck:
                    continue
                entries = [
                    self._without(entry, stuck[entry.table].columns) if entry.table in stuck else entry
                    for entry in decision.tables
                ]
                decision.save(tuple(entries))
                for entry in entries:
                    if entry.table in stuck:
                        self.tables.append(entry, decision.transaction)
                found += stuck.values()
        return found

    def _decisions(self) -> Iterator[_Decision]:
        for stream in streams_of(self.store):
            manifests = Manifests(self.store, stream)
            held = HeldTables(self.store, stream).all().values()
            first = min((each.since for each in held), default=None)
            batches = manifests.batches()
            newest = batches[-1:] if first is None else [each for each in batches if each >= min(first, batches[-1])]
            for manifest in manifests.read_many(newest):
                name = f"batch {manifest.batch_id} of {stream}"
                yield _Decision(
                    name, manifest.tables, BatchTransaction.of(manifest), _saving_batch(manifests, manifest)
                )
        replays = ReplayManifests(self.store)
        for replay in replays.unfinished():
            yield _Decision(
                f"replay {replay.number}", replay.tables, replay.transaction, _saving_replay(replays, replay)
            )

    def _stuck(self, decision: _Decision) -> Iterator[StuckTable]:
        for entry in decision.tables:
            have = self.tables.schema(entry.table)
            if have is None or not conflicts(have, columns_of(entry)):
                continue
            taken = self.tables.transaction_version(entry.table, decision.transaction.app_id)
            if taken is None or taken < decision.transaction.version:
                columns = tuple(field.name for field in columns_of(entry) if conflicts(have, pa.schema([field])))
                yield StuckTable(decision=decision.name, table=entry.table, columns=columns, rows=entry.rows)

    def _without(self, entry: TableFiles, columns: tuple[str, ...]) -> TableFiles:
        kept = pa.schema([field for field in columns_of(entry) if field.name not in columns])
        have = self.tables.schema(entry.table)
        assert have is not None  # noqa: S101 # its columns have just been compared
        return msgspec.structs.replace(
            entry,
            schema=delta_schema_json(merged(have, kept)),
            files=tuple(self._rewritten(entry.table, file, columns) for file in entry.files),
        )

    def _rewritten(self, table: str, file: DataFile, columns: tuple[str, ...]) -> DataFile:
        content = self.store.get(f"{table}/{file.path}")
        if content is None:
            raise StoreError(f"{table}/{file.path} is missing, though a manifest that is not committed yet names it")
        rows = pq.read_table(pa.BufferReader(content))
        kept = rows.drop_columns([name for name in columns if name in rows.column_names])
        return write_rows(self.store, table, kept, file.partition)


def _saving_batch(manifests: Manifests, manifest: BatchManifest) -> Callable[[tuple[TableFiles, ...]], None]:
    return lambda tables: manifests.replace(msgspec.structs.replace(manifest, tables=tables))


def _saving_replay(manifests: ReplayManifests, manifest: ReplayManifest) -> Callable[[tuple[TableFiles, ...]], None]:
    return lambda tables: manifests.replace(msgspec.structs.replace(manifest, tables=tables))
