"""A gold table as its job sees it: from which source versions it was computed, and how it is written."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import msgspec
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from gamelake.serving.gold.definition import PARTITION, AggregateDefinition
from gamelake.serving.gold.history import TablePosition
from gamelake.storage.appends import BatchTransaction
from gamelake.storage.columns import delta_field
from gamelake.storage.comments import NO_COMMENTS, Comments
from gamelake.storage.data_files import DataFile, encode_parquet, new_file_name
from gamelake.storage.delta_log import FileEntry, changes_rows, commit_info_of, preceding_entries
from gamelake.storage.manifests import TableFiles
from gamelake.storage.open_tables import OpenTables
from gamelake.storage.rewrites import Replacement
from gamelake.storage.store import Store
from gamelake.storage.tables import delta_schema_json

_SOURCE, _DEFINITION = "gamelake.source", "gamelake.definition"
_MOST_OPEN = 64
_of_thread = threading.local()
_PROPERTIES = {"every": "gamelake.refresh.every", "refresh": "gamelake.refresh.by"}


@dataclass(frozen=True, slots=True)
class GoldTable:
    """A gold table at its newest version; `position` is None if its rows can't be gone on from."""

    handle: DeltaTable
    position: TablePosition | None

    @classmethod
    def open(cls, store: Store, table: str, definition: AggregateDefinition) -> Self | None:
        """Open the table; None if there is none yet."""
        try:
            handle = _open_tables(store).newest(table)
        except TableNotFoundError:
            return None
        return cls(handle, _position(store, table, handle.version(), definition))


def _open_tables(store: Store) -> OpenTables:
    """Those of this thread: a task's process refreshes the same tables again and again, one after the other."""
    opened: OpenTables | None = getattr(_of_thread, "opened", None)
    if opened is None or opened.store.location != store.location:
        opened = _of_thread.opened = OpenTables(store, _MOST_OPEN)
    return opened


def _position(store: Store, table: str, version: int, definition: AggregateDefinition) -> TablePosition | None:
    """What the newest commit that changed rows says of its source; None if that was another's, or of another SQL."""
    for _, actions in preceding_entries(store, table, version):
        if changes_rows(actions):
            notes = commit_info_of(actions)
            if notes.get(_DEFINITION) != definition.fingerprint:
                return None
            return msgspec.json.decode(notes[_SOURCE], type=TablePosition)
    return None


@dataclass(frozen=True, slots=True)
class GoldWriter:
    """Writes versions of one gold table."""

    store: Store
    table: str
    definition: AggregateDefinition
    comments: Comments = NO_COMMENTS

    def write(self, rows: pa.Table, partition: Mapping[str, str | None]) -> DataFile:
        """Write rows as one file that no commit names yet; `rows` has no partition column."""
        content, statistics = encode_parquet(rows, frozenset())
        path = new_file_name(f"{PARTITION}={partition[PARTITION]}" if partition else "")
        self.store.put(f"{self.table}/{path}", content.to_pybytes())
        return DataFile(
            path=path, size=content.size, rows=rows.num_rows, partition=dict(partition), statistics=statistics
        )

    def commit(
        self, gold: GoldTable | None, schema: pa.Schema, files: Sequence[DataFile], removed: Sequence[FileEntry],
        position: TablePosition,
    ) -> bool:  # fmt: skip
        """Put files in the place of others; gives whether that is the table's next version now."""
        remade = gold is None or gold.position is None
        replacement = Replacement(
            entry=self._entry(schema, files),
            removed=removed,
            transaction=BatchTransaction(f"gold-{self.definition.fingerprint}", position.version),
            table_id="" if gold is None else str(gold.handle.metadata().id),
            properties=self._properties() if remade else None,
            notes={_SOURCE: msgspec.json.encode(position).decode(), _DEFINITION: self.definition.fingerprint},
            comments=self.comments,
        )
        version = 0 if gold is None else gold.handle.version() + 1
        return replacement.commit(self.store, version)

    def _entry(self, schema: pa.Schema, files: Sequence[DataFile]) -> TableFiles:
        partition_by = (PARTITION,) if self.is_partitioned else ()
        columns = pa.schema([delta_field(field) for field in schema])
        schema_json = delta_schema_json(columns)
        return TableFiles(table=self.table, partition_by=partition_by, schema=schema_json, files=tuple(files))

    @property
    def is_partitioned(self) -> bool:
        """Whether the table's files are of one day each."""
        return not self.definition.merged_by

    def _properties(self) -> Mapping[str, str]:
        spec = self.definition.spec
        return {_PROPERTIES["every"]: spec.every, _PROPERTIES["refresh"]: spec.refresh.value}
