"""Computes the rows of a merged gold table that changes of silver affect, and no others.

New rows are aggregated and merged. For a commit that replaced files (a deletion, a restore), the aggregates of the
removed files and of the added files are compared: each key for which they differ is computed again from silver. If a
changed file is deleted already, all keys of its day are computed again.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable, Schema

from gamelake.contract.aggregates import Over
from gamelake.contract.time_zones import UTC_DAYS, Zones
from gamelake.delta.appends import schema_of
from gamelake.delta.log.codec import FileEntry, live_files
from gamelake.delta.tables import open_table
from gamelake.layers.silver import COMMON_SCHEMA
from gamelake.model.errors import ContractError, StoreError
from gamelake.objects.store import Store
from gamelake.scans.datasets import dataset, missing_files
from gamelake.scans.sql_engine import Engine, without_zones
from gamelake.serving.gold.definition import PARTITION, UNFIT, AggregateDefinition, quoted
from gamelake.serving.gold.history import ReplacedFiles, TableChanges, TablePosition, day_of, position_at
from gamelake.serving.gold.runs import KeyRange, sorted_by_key

# No column of the contract can have this name.
_PLACE = "(place)"


@dataclass(frozen=True, slots=True)
class Source:
    """One silver table, restricted to the columns that the aggregate reads.

    Attributes:
        store: the lakehouse.
        table: the silver table's path.
        definition: the aggregate.
        sql: the engine in which relations are named. One thread uses it at a time.
        zones: the games' time zones; none if the aggregate's days are in UTC.
    """

    store: Store
    table: str
    definition: AggregateDefinition
    sql: Engine
    zones: Zones = UTC_DAYS
    _given: set[date] = field(default_factory=set)

    def newest(self) -> tuple[DeltaTable, TablePosition]:
        """Open the table at its newest version, and return that version as a position too.

        Raises:
            TableNotFoundError: there is no such table yet.
            StoreError: its log lacks the newest version's entry.
        """
        handle = open_table(self.store.location, self.table)
        position = position_at(self.store, self.table, handle.version(), handle.schema().to_json())
        if position is None:
            raise StoreError(f"{self.table} lacks the log entry of its newest version, {handle.version()}: restore it")
        return handle, position

    def lacks_required(self, schema: pa.Schema) -> bool:
        """Return True if the table lacks a column, or a field of one, that the aggregate requires."""
        return not all(_has(schema, path) for path in self.definition.spec.requires)

    def at(self, position: TablePosition) -> DeltaTable:
        """Open the table at a position."""
        return open_table(self.store.location, self.table, position.version)

    def give_live(self, name: str, handle: DeltaTable) -> None:
        """Register all rows of a version as the relation `name`.

        Raises:
            ContractError: the aggregate reads a column that the table lacks.
        """
        self.give(name, schema_of(handle), live_files(handle))

    def give(self, name: str, schema: pa.Schema, files: Sequence[FileEntry]) -> None:
        """Register the rows of some files as the relation `name`.

        Args:
            name: the relation's name.
            schema: all columns of the table; the relation has those that the aggregate reads, timestamps without zone.
                A column that `silver/events` has not yet got is null.
            files: the files.

        Raises:
            ContractError: the aggregate reads a column that the table lacks.
        """
        if self.definition.spec.over is Over.ALL_GAMES:
            schema = _with_later_columns(schema)
        lacking = sorted(self.definition.reads - set(schema.names))
        if lacking:
            raise ContractError(
                f"the aggregate '{self.definition.spec.name}' reads {lacking[0]}, which {self.table} lacks"
            )
        partitions = {column for file in files for column in file.partition}
        columns = pa.schema([field for field in schema if field.name in self.definition.reads | partitions])
        self._set_reporting_date(files)
        self.sql.give(name, dataset(self.store.location, self.table, without_zones(columns), files))

    def _set_reporting_date(self, files: Sequence[FileEntry]) -> None:
        """Extend the engine's `reporting_date` to the days of some files: most refreshes need one offset per zone."""
        new = {day for file in files if (day := day_of(file)) is not None} - self._given
        if self.zones.names and new:
            self._given.update(new)
            self.sql.set_reporting_date(self.zones.sql(min(self._given), max(self._given)))

    def aggregate(self, name: str) -> tuple[pa.Table, int]:
        """Aggregate a named relation.

        Returns:
            The definition's columns, one row per key, unordered; and the number of rows with an unfit value.
        """
        rows = self.sql.table(self.definition.counting(name))
        return rows.drop_columns([UNFIT]), pc.sum(rows.column(UNFIT)).as_py() or 0


def _with_later_columns(schema: pa.Schema) -> pa.Schema:
    """Add the columns that an older `silver/events` gets with its next commit."""
    later = [field for field in COMMON_SCHEMA if field.name not in schema.names]
    return pa.schema([*schema, *later])


def _has(schema: pa.Schema, path: str) -> bool:
    fields: pa.Schema | pa.StructType = schema
    *structs, name = path.split(".")
    for struct in structs:
        place = fields.get_field_index(struct)
        if place < 0 or not pa.types.is_struct(fields.field(place).type):
            return False
        fields = fields.field(place).type
    return bool(fields.get_field_index(name) >= 0)


@dataclass(slots=True)
class Merge:
    """One merge of a source's changes into a gold table, range by range of its keys.

    If a changed file is deleted already, as after an erasure with a purge, its day is computed again.

    Raises:
        ContractError: the aggregate reads a column that silver lacks.
        FileNotFoundError: a changed file is deleted already, and `event_date` is not a key.

    Attributes:
        source: the silver table.
        changes: the changes to merge, without those of days that are computed again.
        gold: the gold table's rows before the merge.
        keys: the key columns of all changed rows, each key once, sorted, nulls last.
        unfit: the number of new rows with an unfit value.
    """

    source: Source
    changes: TableChanges
    gold: ds.Dataset
    keys: pa.Table = field(init=False)
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

    @property
    def _replaced(self) -> Sequence[ReplacedFiles]:
        # From a table by player, the erasing job itself deletes the player's rows.
        return (
            self.changes.replaced if self._definition.is_by_player else (*self.changes.replaced, *self.changes.erased)
        )

    def __post_init__(self) -> None:
        """Aggregate the new rows, and compute the keys whose rows were replaced again."""
        schema = pa.schema(Schema.from_json(self.changes.position.schema))
        replaced = [file for each in self._replaced for file in (*each.removed, *each.added)]
        gone = missing_files(self.source.store, self.source.table, [*self.changes.appended, *replaced])
        if gone and PARTITION not in self._definition.keys:
            raise FileNotFoundError(f"{gone[0].relative_path} is gone")
        days = frozenset(map(day_of, gone))
        self.changes = self.changes.without(days)
        self.source.give("fresh_rows", schema, self.changes.appended)
        fresh, self.unfit = self.source.aggregate("fresh_rows")
        again = [self._changed_otherwise(schema), *([self._keys_of(days)] if days else [])]
        keys = list(self._definition.keys)
        self._fresh = self._sorted(fresh)
        self._again = self._sorted(pa.concat_tables(again).group_by(keys).aggregate([]))
        self._sql.give("again", self._again)
        self._anew = self._sorted(self._computed_again()) if len(self._again) else None
        changed = pa.concat_tables([self._fresh.select(keys), self._again])
        self.keys = self._sorted(changed.group_by(keys).aggregate([]))

    def rows(self, old: pa.Table, concerned: KeyRange) -> pa.Table:
        """Merge the changes of a range of keys into the range's rows. Copying rows of unchanged keys is cheap.

        Args:
            old: all rows of the range's files, with the gold table's columns.
            concerned: the range.

        Returns:
            The rows that replace `old`, with the same columns and types, unordered.
        """
        definition, keys = self._definition, list(self._definition.keys)
        fresh, again = concerned.of(self._fresh, keys), concerned.of(self._again, keys)
        self._sql.give("old_keys", old.select(keys).append_column(_PLACE, pa.array(np.arange(len(old)))))
        self._sql.give("changed", pa.concat_tables([fresh.select(keys), again]))
        places = self._sql.table(definition.aggregates("SEMI", "old_keys", "changed")).column(_PLACE)
        self._sql.give("old", old.take(places))
        self._sql.give("fresh", fresh)
        rows = self._sql.table(definition.merging("(SELECT * FROM old UNION ALL BY NAME SELECT * FROM fresh)"))
        if self._anew is not None:
            self._sql.give("merged", rows)
            self._sql.give("again", again)
            self._sql.give("recomputed", concerned.of(self._anew, keys))
            kept = definition.aggregates("ANTI", "merged", "again")
            rows = self._sql.table(f"{kept} UNION ALL BY NAME SELECT * FROM recomputed")  # noqa: S608 # names
        stays = np.ones(len(old), bool)
        stays[places.to_numpy()] = False
        return pa.concat_tables([old.filter(pa.array(stays)), rows.select(old.column_names).cast(old.schema)])

    def _sorted(self, rows: pa.Table) -> pa.Table:
        return sorted_by_key(rows, self._definition.keys)

    def _computed_again(self) -> pa.Table:
        """Aggregate the keys to compute again, from all of silver that can have these keys."""
        by_day = PARTITION in self._definition.keys
        days = frozenset(self._again.column(PARTITION).to_pylist()) if by_day else None
        self._give_silver(None if days is None else self.source.zones.utc_days(days))
        return self._sql.table(self._definition.over(f"({self._definition.rows_of('again', 'silver')})"))

    def _give_silver(self, days: Set[date | None] | None) -> None:
        """Register silver's rows of these days, or of all, as `silver`."""
        handle = self.source.at(self.changes.position)
        files = [file for file in live_files(handle) if days is None or day_of(file) in days]
        self.source.give("silver", schema_of(handle), files)

    def _keys_of(self, days: Set[date | None]) -> pa.Table:
        """Return the keys in gold and in silver that may have events of these days, in UTC; some appear twice."""
        keys = ", ".join(map(quoted, self._definition.keys))
        of_days = pc.field(PARTITION).isin(pa.array(self.source.zones.reporting_days(days), pa.date32()))
        self._sql.give("gold", self.gold.to_table(columns=list(self._definition.keys), filter=of_days))
        self._give_silver(days)
        return self._sql.table(f"SELECT * FROM gold UNION ALL SELECT {keys} FROM ({self._definition.over('silver')})")  # noqa: S608 # names

    def _changed_otherwise(self, schema: pa.Schema) -> pa.Table:
        """Return the keys whose aggregates differ between the removed and the added files of a commit."""
        keys = ", ".join(map(quoted, self._definition.keys))
        self.source.give("no_rows", schema, [])
        found = [self._sql.table(f"SELECT {keys} FROM ({self._definition.over('no_rows')})")]  # noqa: S608 # names
        for each in self._replaced:
            for name, files in (("before", each.removed), ("after", each.added)):
                self.source.give(f"{name}_rows", schema, files)
                self._sql.give(name, self._sql.table(self._definition.over(f"{name}_rows")))
            either = "(SELECT * FROM before EXCEPT ALL SELECT * FROM after)"
            other = "(SELECT * FROM after EXCEPT ALL SELECT * FROM before)"
            found.append(self._sql.table(f"SELECT DISTINCT {keys} FROM ({either} UNION ALL {other})"))  # noqa: S608
        return pa.concat_tables(found).group_by(list(self._definition.keys)).aggregate([])
