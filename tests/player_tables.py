"""Tables with rows of players, as the stream leaves them: a few rows per file, a file per batch."""

from collections import Counter
from pathlib import Path

import pyarrow as pa

from gamelake.storage.appends import BatchTransaction
from gamelake.storage.columns import delta_field
from gamelake.storage.data_files import DataFile, encode_parquet, new_file_name
from gamelake.storage.manifests import TableFiles
from gamelake.storage.player_rows import PlayerTable
from gamelake.storage.store import Location, Store
from gamelake.storage.tables import DeltaTables, delta_schema_json, open_table

SILVER, BRONZE = PlayerTable("silver/kart_rumble_events", "gamer_id"), PlayerTable("bronze/events", "key")
DAY = "2026-01-01"
DAYS = {"silver": "event_date", "bronze": "ingest_date"}


def store_in(folder: Path) -> Store:
    return Store(Location(uri=folder.as_uri()))


def rows_of(table: PlayerTable, players: list[str]) -> pa.Table:
    moments = pa.array([1_767_225_600_000_000 + number for number in range(len(players))], pa.timestamp("us", "UTC"))
    values = players if table is SILVER else [player.encode() for player in players]
    return pa.table({"event_time": moments, table.column: values})


def append(tables: DeltaTables, store: Store, table: PlayerTable, batch: int, players: list[str]) -> None:
    """One batch of the stream: one file of one table."""
    tables.append(an_entry(store, table, players), BatchTransaction("query-0", batch))


def an_entry(store: Store, table: PlayerTable, players: list[str]) -> TableFiles:
    """A batch's file, written and not committed."""
    return entry_of(store, table, rows_of(table, players))


def entry_of(store: Store, table: PlayerTable, rows: pa.Table) -> TableFiles:
    """Rows as a batch's file, written and not committed."""
    day = DAYS[table.name.partition("/")[0]]
    content, statistics = encode_parquet(rows, ())
    path = new_file_name(f"{day}={DAY}")
    store.put(f"{table.name}/{path}", content.to_pybytes())
    file = DataFile(path=path, size=content.size, rows=rows.num_rows, partition={day: DAY}, statistics=statistics)
    schema = delta_schema_json(pa.schema([*rows.schema, pa.field(day, pa.date32())]))
    return TableFiles(table=table.name, partition_by=(day,), schema=schema, files=(file,))


def players_in(store: Store, table: PlayerTable) -> Counter[str]:
    """How many rows each player has."""
    column = open_table(store.location, table.name).to_pyarrow_table(columns=[table.column])[table.column]
    return Counter(each.decode() if isinstance(each, bytes) else each for each in column.to_pylist())


def append_rows(tables: DeltaTables, store: Store, batch: int, rows: pa.Table) -> None:
    """One batch with whatever columns a test needs: one file of the silver table of a game, all of one day."""
    rows = rows.cast(pa.schema([delta_field(field) for field in rows.schema]))
    content, statistics = encode_parquet(rows, ())
    path = new_file_name(f"event_date={DAY}")
    store.put(f"{SILVER.name}/{path}", content.to_pybytes())
    file = DataFile(
        path=path, size=content.size, rows=rows.num_rows, partition={"event_date": DAY}, statistics=statistics
    )
    schema = delta_schema_json(pa.schema([*rows.schema, pa.field("event_date", pa.date32())]))
    entry = TableFiles(table=SILVER.name, partition_by=("event_date",), schema=schema, files=(file,))
    tables.append(entry, BatchTransaction("query-0", batch))
