"""The silver table of a gold table, as relations that its aggregate can be asked of."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from deltalake import DeltaTable

from gamelake.errors import ContractError, StoreError
from gamelake.gold.definition import Definition
from gamelake.gold.engine import Engine, without_zones
from gamelake.gold.history import Position, position_at
from gamelake.lake.appends import schema_of
from gamelake.lake.datasets import dataset
from gamelake.lake.file_entries import FileEntry, live_files
from gamelake.lake.store import Store
from gamelake.lake.tables import open_table


@dataclass(frozen=True, slots=True)
class Source:
    """One silver table; whatever it gives, it gives only the columns that the aggregate reads."""

    store: Store
    table: str
    definition: Definition
    sql: Engine

    def newest(self) -> tuple[DeltaTable, Position]:
        """The table at its newest version, and that version as a position.

        Raises:
            TableNotFoundError: there is no such table yet.
            StoreError: its log lacks the newest version's entry.
        """
        handle = open_table(self.store.location, self.table)
        position = position_at(self.store, self.table, handle.version(), handle.schema().to_json())
        if position is None:
            raise StoreError(f"{self.table} has no log entry of its newest version, {handle.version()}")
        return handle, position

    def at(self, position: Position) -> DeltaTable:
        """The table at a position."""
        return open_table(self.store.location, self.table, position.version)

    def give_live(self, name: str, handle: DeltaTable) -> None:
        """Name all rows of a version."""
        self.give(name, schema_of(handle), live_files(handle))

    def give(self, name: str, schema: pa.Schema, files: Sequence[FileEntry]) -> None:
        """Name the rows of some files.

        Raises:
            ContractError: the aggregate reads a column that the table lacks.
        """
        lacking = sorted(self.definition.reads - set(schema.names))
        if lacking:
            raise ContractError(
                f"the aggregate '{self.definition.spec.name}' reads {lacking[0]}, which {self.table} has not"
            )
        partitions = {column for file in files for column in file.partition}
        columns = pa.schema([field for field in schema if field.name in self.definition.reads | partitions])
        self.sql.give(name, dataset(self.store.location, self.table, without_zones(columns), files))
