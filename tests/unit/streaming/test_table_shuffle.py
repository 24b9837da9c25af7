"""Rows that tasks hand over to others by shuffle files: each is merged once, however the tables are shared out."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelake.contract.games import load_games
from gamelake.model.errors import StoreError
from gamelake.model.naming import game_table
from gamelake.objects.store import Location, Store
from gamelake.streaming.plan import ShuffleFile, TaskPlan, WrittenFile
from gamelake.streaming.tasks import table_shuffle
from gamelake.streaming.tasks.chunk import ChunkWriter, TableDay
from gamelake.streaming.tasks.table_shuffle import MergingTask, remove_leftovers, shares, write_shuffle_file
from tests.unit.properties import examples

CONTRACT = load_games(Path(__file__).parents[3] / "contracts/games.yaml")
FOLDER = "shuffle"
DAY = 20_000


class Shuffle:
    """A lakehouse in a folder, with tasks that write shuffle files."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(Location(uri=folder.as_uri()))
        self.plan = TaskPlan(lakehouse=self.store.location, registry_url="", topic="events", contract=CONTRACT)

    def write(self, rows: Iterable[tuple[int, str]], schema_id: int = 1, column: str = "event_id") -> ShuffleFile:
        """Write the rows of one task: the number of a game and a value."""
        writer = ChunkWriter(self.store, CONTRACT, 1)
        for game, value in rows:
            writer.add(TableDay(table(game), DAY), pa.RecordBatch.from_pydict({column: [value]}), schema_id)
        written = write_shuffle_file(self.store, FOLDER, writer.take_small(table_shuffle.SMALL_BYTES))
        assert written is not None
        assert writer.write() == ()
        return written

    def merge(self, files: list[ShuffleFile], most_bytes: int = 2**20) -> list[WrittenFile]:
        """Merge all tables, in shares of at most `most_bytes` bytes."""
        encoded = MergingTask(self.plan, files)(shares(files, most_bytes))
        return [file for each in encoded for file in msgspec.msgpack.decode(each, type=list[WrittenFile])]

    def rows(self, files: Iterable[WrittenFile]) -> Counter[tuple[str, str]]:
        """The rows of files: table and value."""
        found = Counter[tuple[str, str]]()
        for file in files:
            content = self.store.get(f"{file.table}/{file.file.path}")
            for value in pq.read_table(pa.BufferReader(content))["event_id"].to_pylist():
                found[file.table, value] += 1
        return found


def table(game: int) -> str:
    return game_table(f"game_{game}")


@pytest.fixture
def shuffle(tmp_path: Path) -> Shuffle:
    return Shuffle(tmp_path)


_TASKS = st.lists(
    st.lists(st.tuples(st.integers(0, 12), st.text("abc", min_size=1)), min_size=1, max_size=20), min_size=1, max_size=5
)


@examples(30)
@given(tasks=_TASKS, most_bytes=st.integers(1, 5_000))
def test_each_row_is_in_one_file_and_each_table_has_one(tasks: list[list[tuple[int, str]]], most_bytes: int) -> None:
    with TemporaryDirectory() as folder:
        shuffle = Shuffle(Path(folder))

        files = shuffle.merge([shuffle.write(rows) for rows in tasks], most_bytes)

        assert shuffle.rows(files) == Counter((table(game), value) for rows in tasks for game, value in rows)
        assert Counter(file.table for file in files) == Counter({table(game) for rows in tasks for game, _ in rows})


def test_a_file_has_the_schema_ids_of_all_of_its_rows(shuffle: Shuffle) -> None:
    [file] = shuffle.merge([shuffle.write([(1, "a")], schema_id=7), shuffle.write([(1, "b")], schema_id=3)])

    assert file.schema_ids == (3, 7)
    assert file.file.rows == 2


def test_rows_whose_columns_conflict_are_in_files_of_their_own(shuffle: Shuffle) -> None:
    as_text = shuffle.write([(1, "a")])
    writer = ChunkWriter(shuffle.store, CONTRACT, 1)
    writer.add(TableDay(table(1), DAY), pa.RecordBatch.from_pydict({"event_id": [1.5]}), 2)
    as_number = write_shuffle_file(shuffle.store, FOLDER, writer.take_small(100))
    assert as_number is not None

    files = shuffle.merge([as_text, as_number])

    assert sorted(file.schema_ids for file in files) == [(1,), (2,)]


def test_many_rows_are_written_before_all_are_in_memory(shuffle: Shuffle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_shuffle, "_MEMORY_BYTES", 1_000)
    written = [shuffle.write([(1, letter * 400)]) for letter in "abcdef"]

    files = shuffle.merge(written)

    assert [file.file.rows for file in files] == [3, 3]


def test_large_tables_are_not_handed_over(shuffle: Shuffle) -> None:
    writer = ChunkWriter(shuffle.store, CONTRACT, 1)
    for game, value in ((1, "small"), (2, "large" * 100)):
        writer.add(TableDay(table(game), DAY), pa.RecordBatch.from_pydict({"event_id": [value]}))

    small = writer.take_small(100)

    assert [rows.target.table for rows in small] == [table(1)]
    assert [file.table for file in writer.write()] == [table(2)]


def test_a_task_without_small_tables_writes_no_object(shuffle: Shuffle) -> None:
    assert write_shuffle_file(shuffle.store, FOLDER, []) is None
    assert shuffle.store.paths(FOLDER) == []


def test_a_shuffle_file_that_is_gone_ends_the_batch_with_an_error(shuffle: Shuffle) -> None:
    written = shuffle.write([(1, "a")])
    shuffle.store.delete(written.path)

    with pytest.raises(StoreError, match="is missing"):
        shuffle.merge([written])


def test_what_a_killed_driver_has_left_is_removed_at_a_start(shuffle: Shuffle) -> None:
    shuffle.write([(1, "a")])

    remove_leftovers(shuffle.store, FOLDER)

    assert shuffle.store.paths(FOLDER) == []
