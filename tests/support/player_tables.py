"""Tables with rows of players, as the stream leaves them: a few rows per file, a file per batch."""

from collections import Counter
from datetime import date
from pathlib import Path

import pyarrow as pa

from gamelake.delta.appends import BatchTransaction
from gamelake.delta.columns import delta_field, delta_schema_json
from gamelake.delta.data_files import write_rows
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import DeltaTables, open_table
from gamelake.ledger.generations import Generation, Generations
from gamelake.maintenance.compaction import CompactionRule, TableCompaction
from gamelake.objects.store import Location, Store
from gamelake.scans.player_rows import PlayerTable

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


def add_stream(store: Store, stream: str, query_id: str) -> None:
    """A stream's first generation: its batches have the application `query_id-0`."""
    Generations(store, stream).add(
        Generation(
            stream=stream,
            number=0,
            query_id=query_id,
            topic=stream,
            topic_id="id",
            first_batch=0,
            reason="test",
            created_at="2026-01-01T00:00:00+00:00",
        )
    )


def an_entry(store: Store, table: PlayerTable, players: list[str]) -> TableFiles:
    """A batch's file, written and not committed."""
    return entry_of(store, table, rows_of(table, players))


def entry_of(store: Store, table: PlayerTable, rows: pa.Table) -> TableFiles:
    """Rows as a batch's file, written and not committed."""
    day = DAYS[table.name.partition("/")[0]]
    file = write_rows(store, table.name, rows, {day: DAY})
    schema = delta_schema_json(pa.schema([*rows.schema, pa.field(day, pa.date32())]))
    return TableFiles(table=table.name, partition_by=(day,), schema=schema, files=(file,))


def players_in(store: Store, table: PlayerTable) -> Counter[str]:
    """Return how many rows each player has."""
    column = open_table(store.location, table.name).to_pyarrow_table(columns=[table.column])[table.column]
    return Counter(each.decode() if isinstance(each, bytes) else each for each in column.to_pylist())


def append_rows(tables: DeltaTables, store: Store, batch: int, rows: pa.Table) -> None:
    """One batch with whatever columns a test needs: one file of the silver table of a game, all of one day."""
    rows = rows.cast(pa.schema([delta_field(field) for field in rows.schema]))
    file = write_rows(store, SILVER.name, rows, {"event_date": DAY})
    schema = delta_schema_json(pa.schema([*rows.schema, pa.field("event_date", pa.date32())]))
    entry = TableFiles(table=SILVER.name, partition_by=("event_date",), schema=schema, files=(file,))
    tables.append(entry, BatchTransaction("query-0", batch))


def compact(store: Store, table: str = SILVER.name) -> None:
    """Compact a table's small files, also those of the newest day."""
    rule = CompactionRule(target_bytes=10**6, hot_files=1, today=date(2026, 11, 22))
    TableCompaction(store.location, table, rule)()
