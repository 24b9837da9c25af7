"""Rows of players: the tables that have them, the column that names the player, and how many rows players have."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gamelake.storage.appends import schema_of
from gamelake.storage.columns import without_views
from gamelake.storage.delta_log import live_files, object_path
from gamelake.storage.listing import own_tables
from gamelake.storage.store import Store
from gamelake.storage.tables import open_table

# Columns that name a row's player: the event's player, or the key of the Kafka record, which is the same.
_PLAYER_COLUMNS: Mapping[str, pa.DataType] = {"gamer_id": pa.string(), "key": pa.binary()}


@dataclass(frozen=True, slots=True)
class PlayerFilter:
    """Players by their pseudonyms; selects their rows."""

    pseudonyms: frozenset[str]

    def rows_in(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Which rows are of one of the players.

        Args:
            column: pseudonyms, of type string or binary (UTF-8), also large, as views or dictionary-encoded.

        Returns:
            One bool for each row.
        """
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        column = column.cast(without_views(column.type))
        names = sorted(self.pseudonyms)
        is_bytes = pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)
        values = [name.encode() for name in names] if is_bytes else names
        return pc.is_in(column, value_set=pa.array(values, column.type))


@dataclass(frozen=True, slots=True)
class PlayerTable:
    """A table with rows of players, and the column that names the player."""

    name: str
    column: str


@dataclass(slots=True)
class PlayerRowCount:
    """The rows of players in a table, and the number and bytes of the files that have them."""

    rows: int = 0
    files: int = 0
    bytes: int = 0


def player_tables(store: Store) -> list[PlayerTable]:
    """All tables with rows of players except clones, which an erasure drops."""
    found = (player_table(store, name) for name in own_tables(store))
    return [table for table in found if table is not None]


def player_table(store: Store, name: str) -> PlayerTable | None:
    """The table with its player column; None if it has no such column.

    Raises:
        TableNotFoundError: there is no table.
    """
    schema = schema_of(open_table(store.location, name))
    for column, arrow in _PLAYER_COLUMNS.items():
        if schema.get_field_index(column) >= 0 and schema.field(column).type == arrow:
            return PlayerTable(name, column)
    return None


def count_rows(store: Store, table: PlayerTable, players: PlayerFilter) -> PlayerRowCount:
    """The players' rows in a table's newest version."""
    found = PlayerRowCount()
    for file in live_files(open_table(store.location, table.name)):
        rows = rows_in_file(store, table, file.relative_path, players)
        if rows:
            found = PlayerRowCount(found.rows + rows, found.files + 1, found.bytes + file.size)
    return found


def rows_in_file(store: Store, table: PlayerTable, path: str, players: PlayerFilter) -> int:
    """The number of the players' rows in a file, 0 if the file is gone."""
    content = store.get(object_path(store.location, table.name, path))
    if content is None:
        return 0
    parquet = pq.ParquetFile(pa.BufferReader(content))
    if table.column not in parquet.schema_arrow.names:
        return 0
    return int(pc.sum(players.rows_in(parquet.read([table.column])[table.column])).as_py() or 0)


def rows_of(store: Store, table: PlayerTable, pseudonym: str) -> Iterator[pa.Table]:
    """The rows of a player, a table for each file with some, with all columns and the partition columns as strings."""
    player_filter = PlayerFilter(frozenset([pseudonym]))
    for file in live_files(open_table(store.location, table.name)):
        content = store.get(object_path(store.location, table.name, file.relative_path))
        rows = pq.ParquetFile(pa.BufferReader(content or b"")).read()
        rows = rows.filter(player_filter.rows_in(rows[table.column]))
        if rows.num_rows:
            for column, value in file.partition.items():
                rows = rows.append_column(column, pa.repeat(pa.scalar(value, pa.string()), rows.num_rows))
            yield rows
