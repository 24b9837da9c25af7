"""Rows of players: find the tables that have them, and select and count the rows.

A row belongs to a player if its player column is the pseudonym, or if its record contains the pseudonym. The record is
searched because records of files have no key, and producers choose their keys freely.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gamelake.delta.appends import schema_of
from gamelake.delta.columns import without_views
from gamelake.delta.listing import own_tables
from gamelake.delta.log.codec import live_files, object_path
from gamelake.delta.tables import open_table
from gamelake.objects.store import Store
from gamelake.scans.search_terms import SearchTerms

# Columns that name a row's player: the event's player, or the key of the Kafka record, which the gateway sets to the
# player.
_PLAYER_COLUMNS: Mapping[str, pa.DataType] = {"gamer_id": pa.string(), "key": pa.binary()}
# The column of bronze, dead letters and quarantine with the original bytes of the record.
_RECORD = "value"
# A shorter name occurs in other texts by chance, so it is compared but not searched for.
_PSEUDONYM = re.compile("[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class PlayerFilter:
    """Selects the rows of players.

    Attributes:
        pseudonyms: of the players.
    """

    pseudonyms: frozenset[str]

    @property
    def terms(self) -> SearchTerms | None:
        """The pseudonyms of 32 hexadecimal digits as search terms; None if there are none."""
        return _terms(self.pseudonyms)

    def rows_in(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Mark the rows whose player is one of the players.

        Args:
            column: pseudonyms, of type string or binary (UTF-8); large types, views and dictionaries are accepted.

        Returns:
            One bool for each row, in order; False for null.
        """
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        column = column.cast(without_views(column.type))
        names = sorted(self.pseudonyms)
        is_bytes = pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)
        values = [name.encode() for name in names] if is_bytes else names
        return pc.is_in(column, value_set=pa.array(values, column.type))

    def records_in(self, records: pa.ChunkedArray) -> pa.ChunkedArray:
        """Mark the records that contain the pseudonym of one of the players in any of the search terms' encodings.

        Args:
            records: of type binary, large_binary or binary_view; may be null.

        Returns:
            One bool for each record, in order; False for null.
        """
        terms = self.terms
        chunks = records.cast(pa.large_binary()).chunks
        return pa.chunked_array([_holding(chunk, terms) for chunk in chunks], pa.bool_())


@dataclass(frozen=True, slots=True)
class PlayerTable:
    """A table with rows of players.

    Attributes:
        name: the table's path.
        column: the column that names the player.
    """

    name: str
    column: str

    def columns_of(self, schema: pa.Schema) -> list[str]:
        """Return the columns that `rows_in` reads of a file.

        Args:
            schema: the file's columns, any types; a file may lack the player's column.

        Returns:
            Names that the schema has, the player's column first.
        """
        place = schema.get_field_index(_RECORD)
        has_records = place >= 0 and _is_binary(schema.field(place).type)
        return [name for name in (self.column, _RECORD if has_records else "") if name in schema.names]

    def rows_in(self, rows: pa.Table, players: PlayerFilter) -> pa.ChunkedArray:
        """Mark the rows of a file that belong to the players.

        Args:
            rows: at least the columns of `columns_of`.
            players: the players to find.

        Returns:
            One bool for each row, in order.
        """
        found = pa.chunked_array([pa.repeat(False, len(rows))])
        for name in self.columns_of(rows.schema):
            here = players.records_in(rows[name]) if name == _RECORD else players.rows_in(rows[name])
            found = pc.or_(found, here)
        return found


@dataclass(slots=True)
class PlayerRowCount:
    """The number of players' rows in a table.

    Attributes:
        rows: of the players.
        files: the number of files that have such rows.
        bytes: the total size of these files.
    """

    rows: int = 0
    files: int = 0
    bytes: int = 0


def player_tables(store: Store) -> list[PlayerTable]:
    """Return all tables with rows of players, sorted by path, except clones, which an erasure drops."""
    found = (player_table(store, name) for name in own_tables(store))
    return [table for table in found if table is not None]


def player_table(store: Store, name: str) -> PlayerTable | None:
    """Return a table with its player column; None if it has no such column.

    Raises:
        TableNotFoundError: there is no table.
    """
    schema = schema_of(open_table(store.location, name))
    for column, arrow in _PLAYER_COLUMNS.items():
        if schema.get_field_index(column) >= 0 and schema.field(column).type == arrow:
            return PlayerTable(name, column)
    return None


def count_rows(store: Store, table: PlayerTable, players: PlayerFilter) -> PlayerRowCount:
    """Count the players' rows in a table's newest version.

    Raises:
        TableNotFoundError: there is no table.
        StoreError: the table has deletion vectors, or names a file of another lakehouse.
    """
    found = PlayerRowCount()
    for file in live_files(open_table(store.location, table.name)):
        rows = rows_in_file(store, table, file.relative_path, players)
        if rows:
            found = PlayerRowCount(found.rows + rows, found.files + 1, found.bytes + file.size)
    return found


def rows_in_file(store: Store, table: PlayerTable, path: str, players: PlayerFilter) -> int:
    """Count the players' rows in a file; return 0 if the file has been deleted.

    Args:
        store: the lakehouse.
        table: the file's table.
        path: under the table's folder (`FileEntry.relative_path`).
        players: the players to find.
    """
    content = store.get(object_path(store.location, table.name, path))
    if content is None:
        return 0
    parquet = pq.ParquetFile(pa.BufferReader(content))
    found = 0
    for group in range(parquet.num_row_groups):
        rows = parquet.read_row_group(group, table.columns_of(parquet.schema_arrow))
        found += int(pc.sum(table.rows_in(rows, players)).as_py() or 0)
    return found


def rows_of(store: Store, table: PlayerTable, pseudonym: str) -> Iterator[pa.Table]:
    """Yield the rows of a player in a table's newest version.

    Yields:
        One Arrow table for each file that has such rows: the file's columns in its order and types, then the partition
        columns as strings.

    Raises:
        TableNotFoundError: there is no table.
        StoreError: the table has deletion vectors, or names a file of another lakehouse.
        ArrowInvalid: a file has been deleted.
    """
    player_filter = PlayerFilter(frozenset([pseudonym]))
    for file in live_files(open_table(store.location, table.name)):
        content = store.get(object_path(store.location, table.name, file.relative_path))
        rows = pq.ParquetFile(pa.BufferReader(content or b"")).read()
        rows = rows.filter(table.rows_in(rows, player_filter))
        if rows.num_rows:
            for column, value in file.partition.items():
                rows = rows.append_column(column, pa.repeat(pa.scalar(value, pa.string()), rows.num_rows))
            yield rows


@lru_cache(maxsize=8)
def _terms(pseudonyms: frozenset[str]) -> SearchTerms | None:
    names = sorted(name for name in pseudonyms if _PSEUDONYM.fullmatch(name))
    return SearchTerms(names) if names else None


def _holding(records: pa.LargeBinaryArray, terms: SearchTerms | None) -> pa.BooleanArray:
    found = np.zeros(len(records), np.bool_)
    _, offsets, values = records.buffers()
    if terms is not None and len(records) and values is not None:
        starts = np.frombuffer(offsets, np.int64)[records.offset : records.offset + len(records) + 1]
        data = values[int(starts[0]) : int(starts[-1])].to_pybytes()
        for place, _ in terms.places(data):
            found[np.searchsorted(starts, starts[0] + place, side="right") - 1] = True
    return pa.array(found)


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind))
