"""Tables are found by their logs, at the cost of a young lakehouse's however many days they have."""

from datetime import date, timedelta
from pathlib import Path

import pytest

from benchmarks.commits import SmallFiles, game_tables
from benchmarks.year.listings import counted_listings
from gamelake.delta.appends import BatchTransaction
from gamelake.delta.listing import appended_tables, has_log
from gamelake.delta.tables import DeltaTables, open_table
from gamelake.objects.store import Location, Store

TABLES = game_tables(2)


def lakehouse_of_days(folder: Path, days: int) -> Store:
    """Two tables with one file for each day, and a Delta checkpoint of their logs."""
    location = Location(uri=folder.as_uri())
    files = SmallFiles(location, TABLES)
    with DeltaTables(location) as tables:
        for day in range(days):
            for entry in files.next(date(2026, 1, 1) + timedelta(days=day)):
                tables.append(entry, BatchTransaction("days", day))
    for table in TABLES:
        open_table(location, table).create_checkpoint()
    return Store(location)


def listed_to_find_the_tables(store: Store) -> int:
    with counted_listings() as listings:
        assert appended_tables(store) == sorted(TABLES)
    return listings.objects


def test_finding_the_tables_lists_no_more_after_many_days(tmp_path: Path) -> None:
    few, many = (lakehouse_of_days(tmp_path / str(days), days) for days in (2, 20))

    assert listed_to_find_the_tables(many) == listed_to_find_the_tables(few)


@pytest.mark.parametrize("content", [(), ("event_date=2026-01-01/part-1.parquet",)], ids=["empty", "files alone"])
def test_a_folder_without_a_log_is_no_table(tmp_path: Path, content: tuple[str, ...]) -> None:
    store = Store(Location(uri=tmp_path.as_uri()))
    for path in content:
        store.put(f"silver/chess_events/{path}", b"")

    assert not has_log(store, "silver/chess_events")


def test_a_table_is_found_from_its_first_commit_on(tmp_path: Path) -> None:
    store = Store(Location(uri=tmp_path.as_uri()))
    store.put(f"silver/chess_events/_delta_log/{0:020}.json", b"{}")

    assert has_log(store, "silver/chess_events")
