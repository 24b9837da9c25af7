"""What a merged gold table must hold after changes of silver: of the rows that are concerned, no others are computed.

Rows that came are aggregated and merged. A commit that replaced files (a deletion, a restore) is taken apart: where the
aggregates of what went and of what came differ, the key is computed again from all of silver.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, Schema

from gamelake.model.errors import ContractError, StoreError
from gamelake.serving.gold.definition import UNFIT, AggregateDefinition, quoted
from gamelake.serving.gold.history import TableChanges, TablePosition, position_at
from gamelake.serving.gold.runs import KeyRange
from gamelake.storage.appends import schema_of
from gamelake.storage.datasets import dataset
from gamelake.storage.delta_log import FileEntry, live_files, object_path
from gamelake.storage.sql_engine import Engine, without_zones
from gamelake.storage.store import Store
from gamelake.storage.tables import open_table


@dataclass(frozen=True, slots=True)
class Source:
    """One silver table; whatever it gives, it gives only the columns that the aggregate reads."""

    store: Store
    table: str
    definition: AggregateDefinition
    sql: Engine

    def newest(self) -> tuple[DeltaTable, TablePosition]:
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

    def at(self, position: TablePosition) -> DeltaTable:
        """The table at a position."""
        return open_table(self.store.location, self.table, position.version)

    def give_live(self, name: str, handle: DeltaTable) -> None:
        """Name all rows of a version."""
        self.give(name, schema_of(handle), live_files(handle))

    def require(self, files: Sequence[FileEntry]) -> None:
        """Check that the files exist, before DuckDB reads them.

        DuckDB waits for Arrow with Python's lock held. A file system that is written in Python, as that of an object
        store is, needs the lock to report that a file is gone: the query would hang.

        Raises:
            FileNotFoundError: a file is gone.
        """
        location = self.store.location
        missing = self.store.missing([object_path(location, self.table, file.relative_path) for file in files])
        if missing:
            raise FileNotFoundError(f"{missing[0]} is gone")

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

    def aggregate(self, name: str) -> tuple[pa.Table, int]:
        """Aggregate a named relation.

        Returns:
            The definition's columns, one row for each key, unordered; and how many values of the relation are unfit.
        """
        rows = self.sql.table(self.definition.counting(name))
        return rows.drop_columns([UNFIT]), pc.sum(rows.column(UNFIT)).as_py() or 0


@dataclass(slots=True)
class Merge:
    """One merge of a source's changes into a gold table, range by range of the first key.

    Raises:
        FileNotFoundError: a file that came or went is deleted already.

    Attributes:
        keys: the distinct values of the first key column of all changed rows, unordered.
        unfit: how many values of the new rows are unfit.
    """

    source: Source
    changes: TableChanges
    keys: pa.ChunkedArray = field(init=False)
    unfit: int = field(init=False)
    _fresh: pa.Table = field(init=False)
    _again: pa.Table = field(init=False)
    _anew: pa.Table | None = field(init=False)

    @property
    def _sql(self) -> Engine:
        return self.source.sql

    @property
    def _definition(self) -> AggregateDefinition:
        return self.source.definition

    def __post_init__(self) -> None:
        """Read what has changed: new rows are aggregated, and keys whose rows were replaced are computed again."""
        schema = pa.schema(Schema.from_json(self.changes.position.schema))
        replaced = [file for each in self.changes.replaced for file in (*each.removed, *each.added)]
        self.source.require([*self.changes.appended, *replaced])
        self.source.give("fresh_rows", schema, self.changes.appended)
        self._fresh, self.unfit = self.source.aggregate("fresh_rows")
        self._again = self._changed_otherwise(schema)
        self._sql.give("again", self._again)
        self._anew = self._computed_again() if self.changes.replaced else None
        self._sql.give("fresh", self._fresh)
        key = quoted(self._definition.keys[0])
        self.keys = self._sql.table(f"SELECT {key} FROM fresh UNION SELECT {key} FROM again").column(0)  # noqa: S608 # a name

    def rows(self, old: pa.Table, concerned: KeyRange) -> pa.Table:
        """Merge the changes of a range of keys into its rows.

        Args:
            old: the gold table's columns, all rows of the range's files.
            concerned: the range.

        Returns:
            The same columns, the rows that replace `old`, unordered.
        """
        self._sql.give("old", old)
        self._sql.give("fresh", self._of(concerned, self._fresh))
        merged = self._definition.merging("(SELECT * FROM old UNION ALL BY NAME SELECT * FROM fresh)")
        if self._anew is None:
            return self._sql.table(merged)
        self._sql.give("again", self._of(concerned, self._again))
        self._sql.give("anew", self._of(concerned, self._anew))
        kept = f"SELECT r.* FROM ({merged}) r ANTI JOIN again a ON {self._same}"  # noqa: S608 # names
        return self._sql.table(f"{kept} UNION ALL BY NAME SELECT * FROM anew")  # noqa: S608 # see above

    def _of(self, concerned: KeyRange, rows: pa.Table) -> pa.Table:
        return rows.filter(concerned.has(rows.column(self._definition.keys[0])))

    @property
    def _same(self) -> str:
        return " AND ".join(f"r.{quoted(key)} IS NOT DISTINCT FROM a.{quoted(key)}" for key in self._definition.keys)

    def _computed_again(self) -> pa.Table:
        """The aggregates of the keys whose rows were replaced, of all of silver."""
        self.source.give_live("silver", self.source.at(self.changes.position))
        return self._sql.table(self._definition.over(f"(SELECT r.* FROM silver r SEMI JOIN again a ON {self._same})"))  # noqa: S608 # names

    def _changed_otherwise(self, schema: pa.Schema) -> pa.Table:
        """The keys whose aggregates over replaced files are not what they were."""
        keys = ", ".join(map(quoted, self._definition.keys))
        self.source.give("no_rows", schema, [])
        found = [self._sql.table(f"SELECT {keys} FROM ({self._definition.over('no_rows')})")]  # noqa: S608 # names
        for each in self.changes.replaced:
            for name, files in (("before", each.removed), ("after", each.added)):
                self.source.give(f"{name}_rows", schema, files)
                self._sql.give(name, self._sql.table(self._definition.over(f"{name}_rows")))
            either = "(SELECT * FROM before EXCEPT ALL SELECT * FROM after)"
            other = "(SELECT * FROM after EXCEPT ALL SELECT * FROM before)"
            found.append(self._sql.table(f"SELECT DISTINCT {keys} FROM ({either} UNION ALL {other})"))  # noqa: S608
        return pa.concat_tables(found).group_by(list(self._definition.keys)).aggregate([])
