"""A day's rows are counted file by file, as a task of Spark does it, and by the evaluator of the stream."""

from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from gamelake.delta.tables import open_table
from gamelake.model.naming import game_table
from gamelake.objects.store import Location
from gamelake.quality.suites.counting import GAME, ROWS, SAMPLES, UNJUDGED, CountBrokenRows, GameDayFiles
from tests.unit.quality.rules_and_rows import a_rule, checked

DAY = date(2026, 1, 8)


@pytest.fixture
def lake(tmp_path: Path) -> Location:
    return Location(uri=(tmp_path / "lake").as_uri())


def _write(lake: Location, game: str, rows: list[dict[str, object]], day: date = DAY) -> None:
    whole = [
        {"event_time": None, "event_date": day, "kafka_partition": 2, "kafka_offset": at} | row
        for at, row in enumerate(rows)
    ]
    table = pa.Table.from_pylist(whole, schema=_schema(rows))
    write_deltalake(lake.child(game_table(game)), table, partition_by=["event_date"], mode="append")


def _schema(rows: list[dict[str, object]]) -> pa.Schema:
    own = pa.Table.from_pylist(rows).schema
    coordinates = [pa.field("kafka_partition", pa.int64()), pa.field("kafka_offset", pa.int64())]
    moment = [pa.field("event_time", pa.timestamp("us", "UTC")), pa.field("event_date", pa.date32())]
    return pa.schema([*moment, *own, *coordinates])


def _counted(lake: Location, folder: Path, *rules: dict[str, object]) -> list[dict[str, object]]:
    table = GameDayFiles.of("chess", open_table(lake, game_table("chess")), DAY.isoformat())
    count = CountBrokenRows(lake, checked(folder, *rules), {"chess": table})
    return [row for batch in count(iter(count.tasks().to_batches())) for row in batch.to_pylist()]


def test_rows_that_break_a_rule_are_counted_and_some_are_named(lake: Location, tmp_path: Path) -> None:
    _write(lake, "chess", [{"amount": amount} for amount in (1.0, -1.0, None, -2.0)])

    (row,) = _counted(lake, tmp_path / "rules", a_rule())

    assert (row[GAME], row[ROWS], row["paid"]) == ("chess", 4, 2)
    assert row[SAMPLES] == [("paid", "2:1, 2:3")]


def test_each_file_of_the_day_is_counted_once_and_no_other(lake: Location, tmp_path: Path) -> None:
    _write(lake, "chess", [{"amount": -1.0}])
    _write(lake, "chess", [{"amount": -1.0}])
    _write(lake, "chess", [{"amount": -1.0}], day=date(2026, 1, 7))

    assert [row["paid"] for row in _counted(lake, tmp_path / "rules", a_rule())] == [1, 1]


def test_a_rule_for_other_games_counts_nothing(lake: Location, tmp_path: Path) -> None:
    _write(lake, "chess", [{"amount": -1.0}])

    (row,) = _counted(lake, tmp_path / "rules", a_rule(games=["pool"]))

    assert (row["paid"], row[SAMPLES]) == (None, [])


def test_a_column_that_the_table_lacks_is_null(lake: Location, tmp_path: Path) -> None:
    _write(lake, "chess", [{"amount": 1.0}])

    rules = (a_rule("there", "level IS NOT NULL"), a_rule("high", "level > 3"))
    (row,) = _counted(lake, tmp_path / "rules", *rules)

    assert (row["there"], row["high"]) == (1, 0)


def test_a_rule_that_does_not_fit_a_tables_columns_is_reported(lake: Location, tmp_path: Path) -> None:
    _write(lake, "chess", [{"amount": 1.0, "level": {"a": 1}}])

    (row,) = _counted(lake, tmp_path / "rules", a_rule("high", "level > 3"))

    assert row[UNJUDGED] == [("high", "1")]
