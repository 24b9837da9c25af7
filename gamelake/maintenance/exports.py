"""The rows of a person, as the person may have them."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from gamelake.lake.file_entries import live_files
from gamelake.lake.store import Store
from gamelake.lake.tables import open_table
from gamelake.maintenance.player_rows import People, PlayerTable


def rows_of(store: Store, table: PlayerTable, pseudonym: str) -> Iterator[pa.Table]:
    """A person's rows of a table, file by file; partition columns with them."""
    people = People(frozenset([pseudonym]))
    for file in live_files(open_table(store.location, table.name)):
        content = store.get(f"{table.name}/{file.place}")
        rows = pq.ParquetFile(pa.BufferReader(content or b"")).read()
        rows = rows.filter(people.rows_in(rows[table.column]))
        if rows.num_rows:
            for column, value in file.partition.items():
                rows = rows.append_column(column, pa.repeat(pa.scalar(value, pa.string()), rows.num_rows))
            yield rows
