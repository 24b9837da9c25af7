"""Opens a gold table with the source version that it was computed from, and writes new versions of it."""

import threading
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Self

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from gamelake.contract.time_zones import UTC_DAYS, Zones
from gamelake.delta.appends import BatchTransaction, schema_of
from gamelake.delta.columns import delta_field
from gamelake.delta.comments import NO_COMMENTS, Comments
from gamelake.delta.data_files import DataFile, write_rows
from gamelake.delta.log.codec import (
    ERASURE_NOTE,
    FileEntry,
    changes_rows,
    commit_info_of,
    live_files,
    preceding_entries,
)
from gamelake.delta.open_tables import OpenTables
from gamelake.delta.owned_tables import OwnedTable, Replacement
from gamelake.objects.store import Store
from gamelake.scans.datasets import dataset
from gamelake.serving.gold.definition import PARTITION, AggregateDefinition
from gamelake.serving.gold.history import TablePosition

SOURCE_NOTE, _DEFINITION, _ZONES = "gamelake.source", "gamelake.definition", "gamelake.zones"
_GAME = "game_name"
_MOST_OPEN = 64
_of_thread = threading.local()
_PROPERTIES = {"every": "gamelake.refresh.every", "refresh": "gamelake.refresh.by"}


@dataclass(frozen=True, slots=True)
class GoldTable:
    """A gold table at its newest version.

    Attributes:
        handle: the open table.
        position: the version of silver that the rows match; None if a refresh can't continue from the rows.
        is_erased_since: True if an erasure has deleted rows since the gold job's newest commit.
        zones: the games' zones that the gold job's newest commit names; see `Zones.rules`.
    """

    handle: DeltaTable
    position: TablePosition | None
    is_erased_since: bool
    zones: Mapping[str, str]

    @classmethod
    def open(cls, store: Store, table: str, definition: AggregateDefinition, zones: Zones) -> Self | None:
        """Open the table; return None if it does not exist yet.

        A refresh can't continue from the rows of a game whose time zone has changed.
        """
        try:
            handle = _open_tables(store).newest(table)
        except TableNotFoundError:
            return None
        position, is_erased, former = _position(store, table, handle.version(), definition)
        changed = zones.changed_titles(former) if definition.is_by_reporting_day else frozenset()
        if position is not None and changed and _has_rows(store, table, handle, changed):
            position = None
        return cls(handle, position, is_erased, former)


def _open_tables(store: Store) -> OpenTables:
    """Return this thread's open tables: a task's process refreshes the same tables again and again, one at a time."""
    opened: OpenTables | None = getattr(_of_thread, "opened", None)
    if opened is None or opened.store.location != store.location:
        opened = _of_thread.opened = OpenTables(store, _MOST_OPEN)
    return opened


def _has_rows(store: Store, table: str, handle: DeltaTable, titles: Set[str]) -> bool:
    """Return True if the table has rows of one of the games; any row counts in a table of one game."""
    files, schema = live_files(handle), schema_of(handle)
    if _GAME not in schema.names:
        return bool(files)
    rows = dataset(store.location, table, schema, files)
    found: pa.Table = rows.head(1, columns=[_GAME], filter=pc.field(_GAME).isin(sorted(titles)))
    return len(found) > 0


def _position(
    store: Store, table: str, version: int, definition: AggregateDefinition
) -> tuple[TablePosition | None, bool, Mapping[str, str]]:
    """Read the source's position from the gold job's newest commit, and find out if an erasure deleted rows since.

    The last value is the games' zones that the commit names.
    The position is None if another writer has changed rows since, or if other SQL computed the commit.
    """
    is_erased = False
    for _, actions in preceding_entries(store, table, version):
        notes = commit_info_of(actions)
        if notes.get(_DEFINITION) == definition.fingerprint:
            zones = msgspec.json.decode(notes.get(_ZONES, "{}"), type=dict[str, str])
            return msgspec.json.decode(notes[SOURCE_NOTE], type=TablePosition), is_erased, zones
        is_erasure = ERASURE_NOTE in notes and definition.is_by_player
        if _DEFINITION in notes or (changes_rows(actions) and not is_erasure):
            break
        is_erased |= is_erasure
    return None, is_erased, {}


@dataclass(frozen=True, slots=True)
class GoldWriter:
    """Writes versions of one gold table.

    Attributes:
        store: the lakehouse.
        table: the table's path.
        definition: the aggregate, whose fingerprint each commit records.
        zones: the games' time zones, which each commit records if the table's days depend on them.
        comments: the descriptions of the table and its columns.
    """

    store: Store
    table: str
    definition: AggregateDefinition
    zones: Zones = UTC_DAYS
    comments: Comments = NO_COMMENTS

    def write(self, rows: pa.Table, partition: Mapping[str, str | None]) -> DataFile:
        """Write rows as one file that no commit names yet.

        Args:
            rows: the definition's columns in order, sorted by key, without `event_date` if the table is partitioned.
            partition: the file's `event_date`, or nothing if the table is not partitioned.
        """
        return write_rows(self.store, self.table, rows, partition)

    def commit(
        self, gold: GoldTable | None, schema: pa.Schema, files: Sequence[DataFile], removed: Sequence[FileEntry],
        position: TablePosition,
    ) -> bool:  # fmt: skip
        """Replace files by others in one commit.

        Args:
            gold: the table as it was opened; None to create it.
            schema: all columns of the table, in order.
            files: the files to add.
            removed: the files to remove.
            position: the version of silver that the rows match then.

        Returns:
            True if this commit is the table's next version; False if another writer committed first.
        """
        change = Replacement(
            files=files,
            removed=removed,
            transaction=BatchTransaction(f"gold-{self.definition.fingerprint}", position.version),
            notes=self._notes(position),
            sets_columns=gold is None or gold.position is None,
        )
        return self._owned(schema).commit(None if gold is None else gold.handle, change)

    def _notes(self, position: TablePosition) -> Mapping[str, str]:
        notes = {SOURCE_NOTE: msgspec.json.encode(position).decode(), _DEFINITION: self.definition.fingerprint}
        if self.definition.is_by_reporting_day and self.zones.names:
            notes[_ZONES] = msgspec.json.encode(self.zones.rules).decode()
        return notes

    def _owned(self, schema: pa.Schema) -> OwnedTable:
        return OwnedTable(
            store=self.store,
            path=self.table,
            schema=pa.schema([delta_field(field) for field in schema]),
            partition_by=(PARTITION,) if self.is_partitioned else (),
            properties=self._properties(),
            comments=self.comments,
        )

    @property
    def is_partitioned(self) -> bool:
        """True if each file of the table has the rows of one day."""
        return not self.definition.merged_by

    def _properties(self) -> Mapping[str, str]:
        spec = self.definition.spec
        return {_PROPERTIES["every"]: spec.every, _PROPERTIES["refresh"]: spec.refresh.value}
