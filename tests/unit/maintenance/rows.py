"""Batches of a stream with whatever columns a test needs."""

import pyarrow as pa

from gamelake.storage.appends import BatchTransaction
from gamelake.storage.columns import delta_field
from gamelake.storage.data_files import DataFile, encode_parquet, new_file_name
from gamelake.storage.manifests import TableFiles
from gamelake.storage.store import Store
from gamelake.storage.tables import DeltaTables, delta_schema_json
from tests.unit.maintenance.people import SILVER

DAY = "2026-01-01"


def append_rows(tables: DeltaTables, store: Store, batch: int, rows: pa.Table) -> None:
    """One batch: one file of the silver table of a game, all of one day."""
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
