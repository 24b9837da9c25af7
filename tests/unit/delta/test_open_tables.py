"""Tables that stay open are at their newest version whatever was done to them meanwhile."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import TableNotFoundError

from gamelake.delta.log.codec import entry_path, live_files
from gamelake.delta.open_tables import OpenTables
from gamelake.objects.store import Location, Store

TABLE = "gold/a"


class Lakehouse:
    """A folder with tables, and those of them that stay open."""

    def __init__(self, folder: Path, most: int = 4) -> None:
        self.folder = folder
        self.store = Store(Location(uri=f"file://{folder}"))
        self.opened = OpenTables(self.store, most)

    def append(self, table: str = TABLE, commits: int = 1) -> None:
        for number in range(commits):
            write_deltalake(self.folder / table, pa.table({"n": [number]}), mode="append")

    def delete(self, table: str = TABLE) -> None:
        shutil.rmtree(self.folder / table)

    def delete_entries(self, versions: range) -> None:
        for version in versions:
            self.store.delete(entry_path(TABLE, version))

    def check(self, table: str = TABLE) -> None:
        """An open table is as one that is opened now."""
        now, found = DeltaTable(self.folder / table), self.opened.newest(table)
        assert (found.version(), found.metadata().id) == (now.version(), now.metadata().id)
        assert {each.relative_path for each in live_files(found)} == {each.relative_path for each in live_files(now)}


@pytest.fixture
def lakehouse(tmp_path: Path) -> Lakehouse:
    return Lakehouse(tmp_path)


def test_a_table_is_followed_commit_by_commit(lakehouse: Lakehouse) -> None:
    lakehouse.append(commits=3)
    lakehouse.check()
    lakehouse.check()

    lakehouse.append(commits=2)
    DeltaTable(lakehouse.folder / TABLE).delete("n = 0")

    lakehouse.check()


def test_what_was_read_before_is_not_read_again(lakehouse: Lakehouse) -> None:
    lakehouse.append(commits=4)
    lakehouse.opened.newest(TABLE)
    lakehouse.append()
    lakehouse.delete_entries(range(3))

    assert lakehouse.opened.newest(TABLE).version() == 4
    assert len(live_files(lakehouse.opened.newest(TABLE))) == 5


def test_a_table_that_does_not_exist_is_not_found_before_and_after(lakehouse: Lakehouse) -> None:
    with pytest.raises(TableNotFoundError):
        lakehouse.opened.newest(TABLE)
    lakehouse.append()
    lakehouse.check()
    lakehouse.delete()

    with pytest.raises(TableNotFoundError):
        lakehouse.opened.newest(TABLE)


@pytest.mark.parametrize("commits", [1, 3, 5])
def test_a_table_that_was_made_anew_is_opened_again(lakehouse: Lakehouse, commits: int) -> None:
    lakehouse.append(commits=3)
    lakehouse.check()
    lakehouse.delete()
    lakehouse.append(commits=commits)

    lakehouse.check()


def test_a_table_whose_log_was_cleaned_up_is_opened_again(lakehouse: Lakehouse) -> None:
    lakehouse.append(commits=3)
    lakehouse.check()
    lakehouse.append(commits=3)
    DeltaTable(lakehouse.folder / TABLE).create_checkpoint()
    lakehouse.delete_entries(range(5))

    lakehouse.check()
    lakehouse.append()
    lakehouse.check()


def test_a_table_whose_newest_version_is_in_its_checkpoint_alone_is_opened_each_time(lakehouse: Lakehouse) -> None:
    lakehouse.append(commits=3)
    DeltaTable(lakehouse.folder / TABLE).create_checkpoint()
    lakehouse.delete_entries(range(3))

    lakehouse.check()
    assert lakehouse.opened.newest(TABLE) is not lakehouse.opened.newest(TABLE)


def test_no_more_tables_stay_open_than_asked_for(tmp_path: Path) -> None:
    lakehouse = Lakehouse(tmp_path, most=1)
    for table in (TABLE, "gold/b"):
        lakehouse.append(table)
        lakehouse.check(table)
    first = lakehouse.opened.newest("gold/b")

    assert lakehouse.opened.newest("gold/b") is first
    lakehouse.check(TABLE)
    assert lakehouse.opened.newest("gold/b") is not first
