"""Releases decided batches and replays that a table rejects: drops their conflicting columns, and commits them.

Two writers that decide at the same time can add one column with two types to a table. The second decision then can't be
committed: its stream holds the table back, or every later replay ends with IncompatibleSchemaError. The release writes
its rows again without the values of that column, which remain in bronze.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from gamelake.delta.appends import BatchTransaction, columns_of
from gamelake.delta.columns import conflicts, delta_schema_json, merged
from gamelake.delta.data_files import DataFile, write_rows
from gamelake.delta.rewrites import revision_lease
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import DeltaTables
from gamelake.ledger.held_tables import HeldTables
from gamelake.ledger.manifests import BatchManifest, Manifests
from gamelake.ledger.reconciliation import streams_of
from gamelake.ledger.replay_manifests import ReplayManifest, ReplayManifests
from gamelake.ledger.settle_records import SettleRecords
from gamelake.streaming.driver.batch_commits import BatchCommits
from gamelake.streaming.driver.stream import Stream

Manifest = TypeVar("Manifest", BatchManifest, ReplayManifest)


class StuckTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table that rejects a decided batch or replay.

    Attributes:
        decision: the batch or replay, for messages.
        table: path of the table.
        columns: names of the columns whose types conflict.
        rows: number of the decision's rows for the table.
    """

    decision: str
    table: str
    columns: tuple[str, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class _Decision:
    """A decided batch or replay.

    Attributes:
        name: the batch or replay, for messages.
        tables: its files by table.
        transaction: the transaction of its commits.
        save: replaces the files in its manifest.
    """

    name: str
    tables: tuple[TableFiles, ...]
    transaction: BatchTransaction
    save: Callable[[tuple[TableFiles, ...]], None]


@dataclass(frozen=True, slots=True)
class StuckDecisions:
    """The newest batch of each stream, the batches that wait for a table, and the unfinished replays of a lakehouse.

    Attributes:
        tables: reads the tables' columns, and commits to them.
    """

    tables: DeltaTables

    def dry_run(self) -> list[StuckTable]:
        """Return the tables that reject a decision; write nothing."""
        return [stuck for decision in self._decisions() for stuck in self._stuck(decision)]

    def release(self) -> list[StuckTable]:
        """Write the rows again without the conflicting columns, and commit waiting batches in their order.

        Nothing changes until a manifest is replaced, so a run that was killed can be repeated.

        Returns:
            The tables that rejected a decision.

        Raises:
            LeaseHeldError: a replay, restore or erasure runs.
        """
        found: list[StuckTable] = []
        with revision_lease(self.tables.store):
            SettleRecords(self.tables.store).follow()
            # Committing a batch may add a column that conflicts with one of a later batch.
            while stuck := [each for decision in self._decisions() for each in self._rewrite(decision)]:
                found += stuck
                self._commit()
        return found

    def _rewrite(self, decision: _Decision) -> list[StuckTable]:
        """Drop the conflicting columns of a decision, and return the tables that rejected it."""
        stuck = {each.table: each for each in self._stuck(decision)}
        if stuck:
            decision.save(
                tuple(
                    self._without(entry, stuck[entry.table].columns) if entry.table in stuck else entry
                    for entry in decision.tables
                )
            )
        return [*stuck.values()]

    def _commit(self) -> None:
        """Commit waiting batches, as each stream does when it starts; the next replay finishes unfinished replays."""
        for name in streams_of(self.tables.store):
            for manifest in Manifests(self.tables.store, name).last(1):
                stream = Stream(self.tables.store, name, manifest.topic)
                BatchCommits(stream, self.tables).commit(manifest, catch_up_seconds=math.inf)

    def _decisions(self) -> Iterator[_Decision]:
        for stream in streams_of(self.tables.store):
            manifests = Manifests(self.tables.store, stream)
            held = HeldTables(self.tables.store, stream).all().values()
            first = min((each.since for each in held), default=None)
            batches = manifests.batches()
            newest = batches[-1:] if first is None else [each for each in batches if each >= min(first, batches[-1])]
            for manifest in manifests.read_many(newest):
                name = f"batch {manifest.batch_id} of {stream}"
                yield _Decision(name, manifest.tables, manifest.transaction, _saving(manifests.replace, manifest))
        replays = ReplayManifests(self.tables.store)
        for replay in replays.unfinished():
            name, save = f"replay {replay.number}", _saving(replays.replace, replay)
            yield _Decision(name, replay.tables, replay.transaction, save)

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
        content = self.tables.store.require(f"{table}/{file.path}", "a manifest that is not committed yet names it")
        rows = pq.read_table(pa.BufferReader(content))
        kept = rows.drop_columns([name for name in columns if name in rows.column_names])
        return write_rows(self.tables.store, table, kept, file.partition)


def _saving(replace: Callable[[Manifest], None], manifest: Manifest) -> Callable[[tuple[TableFiles, ...]], None]:
    return lambda tables: replace(msgspec.structs.replace(manifest, tables=tables))
