"""Statistics that follow a table commit by commit equal those of a table that is opened again."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from gamelake.model.naming import Layer
from gamelake.objects.store import Location
from services.catalog.errors import TableError, UnreadableLogError
from services.catalog.table_statistics import LogReader, StatisticsTracker
from services.catalog.tables import CatalogTable

TABLE = CatalogTable(Layer.SILVER, "events")


@pytest.fixture
def location(tmp_path: Path) -> Location:
    """A lakehouse with one table of three rows."""
    location = Location(uri=tmp_path.as_uri())
    append(location, 3)
    return location


def append(location: Location, rows: int) -> None:
    write_deltalake(location.child(str(TABLE)), pa.table({"number": list(range(rows))}), mode="append")


def test_a_table_is_measured_by_its_log(location: Location) -> None:
    append(location, 4)
    figures = LogReader(location).open(TABLE)

    assert (figures.version, figures.rows, figures.files, figures.small_files) == (1, 7, 2, 2)
    assert figures.size == sum(file.stat().st_size for file in folder(location).glob("*.parquet"))
    assert figures.committed_at == pytest.approx((folder(location) / f"_delta_log/{1:020}.json").stat().st_mtime, abs=5)


def folder(location: Location) -> Path:
    return Path(location.uri.removeprefix("file://")) / str(TABLE)


def test_following_gives_what_opening_gives(location: Location) -> None:
    reader = LogReader(location)
    followed = reader.open(TABLE)
    for rows in (1, 5, 2):
        append(location, rows)
    DeltaTable(location.child(str(TABLE))).optimize.compact()
    append(location, 1)

    assert reader.follow(TABLE, followed)

    opened = reader.open(TABLE)
    assert followed == opened
    assert (followed.rows, followed.files) == (12, 2)


def test_a_replaced_log_is_not_followed(location: Location) -> None:
    reader = LogReader(location)
    figures = reader.open(TABLE)
    for file in (folder(location) / "_delta_log").iterdir():
        file.unlink()
    append(location, 9)

    assert not reader.follow(TABLE, figures)


def test_a_replaced_table_is_reported_and_measured(location: Location) -> None:
    replaced: list[CatalogTable] = []
    statistics = StatisticsTracker(LogReader(location), on_replaced=replaced.append)
    statistics.measure(frozenset({TABLE}))
    for file in (folder(location) / "_delta_log").iterdir():
        file.unlink()
    append(location, 9)

    assert statistics.measure(frozenset({TABLE})) == []
    assert replaced == [TABLE]
    assert statistics.figures[TABLE].rows == 9


def test_a_damaged_entry_is_an_error_of_its_table_and_the_last_statistics_stay(location: Location) -> None:
    statistics = StatisticsTracker(LogReader(location), on_replaced=lambda _: None)
    statistics.measure(frozenset({TABLE}))
    (folder(location) / f"_delta_log/{1:020}.json").write_bytes(b"{ no JSON\n")

    errors: list[TableError] = statistics.measure(frozenset({TABLE}))

    assert [str(error).startswith("silver/events has a damaged entry 1") for error in errors] == [True]
    assert statistics.figures[TABLE].rows == 3


def test_a_table_whose_newest_entry_is_cleaned_up_is_measured_by_its_checkpoint(location: Location) -> None:
    DeltaTable(location.child(str(TABLE))).create_checkpoint()
    (folder(location) / f"_delta_log/{0:020}.json").unlink()

    assert LogReader(location).open(TABLE).rows == 3


def test_a_table_with_an_empty_newest_entry_can_not_be_opened(location: Location) -> None:
    append(location, 4)
    (folder(location) / f"_delta_log/{1:020}.json").write_bytes(b"")

    with pytest.raises(UnreadableLogError, match="has a damaged entry 1"):
        LogReader(location).open(TABLE)


def test_a_table_without_a_log_can_not_be_opened(location: Location) -> None:
    with pytest.raises(UnreadableLogError):
        LogReader(location).open(CatalogTable(Layer.GOLD, "nothing"))


def test_statistics_of_a_deleted_table_are_dropped(location: Location) -> None:
    statistics = StatisticsTracker(LogReader(location), on_replaced=lambda _: None)
    statistics.measure(frozenset({TABLE}))

    statistics.measure(frozenset())

    assert statistics.figures == {}
