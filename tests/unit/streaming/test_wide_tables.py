"""Tables of more columns than have statistics: filters find each row, whichever message types a chunk brings first."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from gamelake.contract.games import load_games
from gamelake.delta.appends import BatchTransaction
from gamelake.delta.tables import DeltaTables, open_table
from gamelake.model.naming import game_table
from gamelake.objects.store import Location, Store
from gamelake.streaming.driver.table_columns import TableColumns
from gamelake.streaming.tasks.chunk import ChunkWriter, TableDay

CONTRACT = load_games(Path(__file__).parents[3] / "contracts/games.yaml")
TABLE = game_table("kart_rumble")
DAY = 20_000


def rows_of(letter: str) -> pa.RecordBatch:
    """An event of a message type with 24 fields of its own."""
    columns = {"event_id": pa.array([letter])} | {f"{letter}{number}": pa.array([number]) for number in range(24)}
    return pa.RecordBatch.from_pydict(columns)


@pytest.fixture
def table(tmp_path: Path) -> Store:
    """A table that the first chunk makes with the columns a, b; the next one brings b before a."""
    store, columns = Store(Location(uri=tmp_path.as_uri())), TableColumns({})
    for batch, letters in enumerate(("ab", "ba")):
        writer = ChunkWriter(store, CONTRACT, 1, dict(columns.schemas))
        for letter in letters:
            writer.add(TableDay(TABLE, DAY), rows_of(letter))
        [entry] = columns.agree(writer.write())
        with DeltaTables(store.location) as tables:
            tables.append(entry, BatchTransaction("query-0", batch))
    return store


@pytest.mark.parametrize("column", ["event_id", "a0", "a23", "b0", "b23"])
def test_a_filter_of_delta_rs_finds_the_rows_of_each_file(table: Store, column: str) -> None:
    value = "a" if column == "event_id" else int(column[1:])

    found = open_table(table.location, TABLE).to_pyarrow_dataset().to_table(filter=pc.field(column) == value)

    assert found.num_rows == 2
