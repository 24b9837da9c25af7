"""What batches bring is updated into the tables so that they are the batch answer, however the batches come."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from gamelake.model.errors import StartupError
from gamelake.serving.kpis import definitions as kpi
from gamelake.serving.kpis.aggregation import aggregate
from gamelake.serving.kpis.day_tables import DayTable
from gamelake.serving.kpis.definitions import ExactUpTo, KpiTable
from gamelake.serving.kpis.generations import KpiTableError
from gamelake.storage.comments import uncommented
from gamelake.storage.commits import CommitConflictError
from gamelake.storage.store import Location, Store
from tests.kpi_answers import Rows, expected_kpis, in_order
from tests.silver_events import BEGINNING, Event, some_events
from tests.unit.serving.kpis.kpi_facts import facts_of

DAY, HOUR = timedelta(days=1), timedelta(hours=1)


class Lake:
    """A lakehouse with KPI tables alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = Store(Location(uri=f"file://{folder}"))
        self.exact = ExactUpTo()
        self.batch = 0

    def tables(self, app_id: str = "first", former: Sequence[str] = ()) -> dict[str, DayTable]:
        return {table.name: DayTable(self.store, table, app_id, former) for table in kpi.ALL}

    def bring(self, events: Sequence[Event], tables: dict[str, DayTable] | None = None) -> None:
        """Fold the facts of all these events in, as a batch that changed all of them would."""
        aggregate(self.tables() if tables is None else tables, self.exact, facts_of(events), self.batch)
        self.batch += 1

    def rows(self, table: str) -> Rows:
        found = DeltaTable(self.folder / "gold" / table)
        names = [field.name for field in found.schema().fields]
        return in_order([tuple(row[name] for name in names) for row in found.to_pyarrow_table().to_pylist()])

    def version(self, table: str) -> int:
        return DeltaTable(self.folder / "gold" / table).version()


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def check_equal(lake: Lake, events: Sequence[Event]) -> None:
    for table, expected in expected_kpis(events).items():
        assert lake.rows(table) == expected, table


@pytest.mark.parametrize("seed", range(2))
def test_tables_that_grew_with_the_events_are_the_batch_answer(lake: Lake, seed: int) -> None:
    events = some_events(900, seed, days=40, lateness=3 * DAY)

    for count in (100, 500, 900):
        lake.bring(events[:count])

    check_equal(lake, events)


def test_a_batch_that_is_aggregated_twice_changes_nothing(lake: Lake) -> None:
    events = some_events(300, seed=5)

    lake.bring(events)
    lake.bring(events)

    check_equal(lake, events)


def test_a_batch_that_ended_between_two_tables_is_made_whole_by_its_second_run(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = some_events(300, seed=6, days=9)
    lake.bring(events[150:])
    replace, calls = DayTable.replace, []

    def failing(table: DayTable, *arguments: object) -> None:
        calls.append(table.path)
        if len(calls) == 4:
            raise OSError("killed")
        replace(table, *arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as killed:
        killed.setattr(DayTable, "replace", failing)
        with pytest.raises(OSError, match="killed"):
            lake.bring(events)

    lake.bring(events)

    check_equal(lake, events)


def test_a_player_who_turns_out_to_be_older_moves_to_the_earlier_cohort(lake: Lake) -> None:
    today, yesterday = Event(at=BEGINNING + 30 * HOUR), Event(at=BEGINNING + 20 * HOUR)

    lake.bring([today])
    lake.bring([today, yesterday])

    check_equal(lake, [today, yesterday])
    assert [row[:4] for row in lake.rows("kpi_retention")] == [(BEGINNING.date(), "Archery", 1, 1)]


def test_what_did_not_reach_its_hour_is_counted_as_late(lake: Lake) -> None:
    on_time, too_late = [Event(at=BEGINNING)] * 3, [Event(at=BEGINNING + HOUR)] * 2
    facts = facts_of([*on_time, *too_late])
    dropped = facts.filter([row["facet"] == "arrival" or row["hour"].hour == 0 for row in facts.to_pylist()])

    aggregate(lake.tables(), lake.exact, dropped, 0)

    assert [row[3:] for row in lake.rows("kpi_late")] == [(3, 3, 0), (2, 0, 2)]


def test_an_event_that_is_ahead_of_the_platforms_clock_counts_when_it_was_taken_in(lake: Lake) -> None:
    ahead = Event(at=BEGINNING + 40 * HOUR, taken_in=BEGINNING)

    lake.bring([ahead])

    assert [row[0] for row in lake.rows("kpi_daily")] == [BEGINNING.date()]


def test_beyond_the_exact_size_players_are_estimated_with_an_error_that_is_given(lake: Lake) -> None:
    lake.exact = ExactUpTo(players=200, sessions=200)
    events = [Event(at=BEGINNING, gamer=f"g{n}", session=f"s{n}") for n in range(3_000)]

    for count in (150, 1_000, 3_000):
        lake.bring(events[:count])

    (row,) = DeltaTable(lake.folder / "gold/kpi_daily").to_pyarrow_table().to_pylist()
    assert len(lake.rows("kpi_players")) <= 260
    assert len(lake.rows("kpi_sessions")) <= 260
    assert 0.03 < row["players_error"] < 0.1
    assert row["active_players"] == pytest.approx(3_000, rel=4 * row["players_error"])
    assert row["sessions"] == pytest.approx(3_000, rel=4 * row["sessions_error"])


def test_up_to_the_exact_size_the_given_error_is_zero(lake: Lake) -> None:
    lake.bring([Event(at=BEGINNING, gamer=f"g{n}") for n in range(100)])

    assert [row[-2] for row in lake.rows("kpi_active_players")] == [1.0]
    assert [row[-1] for row in lake.rows("kpi_active_players")] == [0.0]


def test_a_new_generation_begins_with_empty_tables(lake: Lake) -> None:
    old, new = some_events(100, seed=7), some_events(100, seed=8)
    lake.bring(old)

    lake.bring(new, lake.tables("second", former=("first",)))

    check_equal(lake, new)


@pytest.mark.parametrize("table", kpi.ALL, ids=lambda table: str(table.name))
def test_every_table_and_column_says_what_it_means(lake: Lake, table: KpiTable) -> None:
    lake.bring([Event(at=BEGINNING)])
    found = DeltaTable(lake.folder / table.path)

    assert found.metadata().description
    assert uncommented(found.schema().to_json()) == []


def test_rows_of_another_writer_stop_the_start(lake: Lake) -> None:
    lake.bring(some_events(20, seed=9))
    path = lake.folder / "gold/kpi_daily"
    write_deltalake(path, DeltaTable(path).to_pyarrow_table(), mode="append")

    with pytest.raises(KpiTableError, match="kpi_daily"):
        lake.tables()["kpi_daily"].open()

    assert issubclass(KpiTableError, StartupError)


def test_a_commit_that_came_in_between_is_noticed(lake: Lake) -> None:
    lake.bring(some_events(20, seed=9))
    table, other = lake.tables()["kpi_players"], lake.tables()["kpi_players"]
    for each in (table, other):
        each.open()
    rows = table.rows()
    other.replace(other.days(), rows, 1)

    with pytest.raises(CommitConflictError):
        table.replace(table.days(), rows, 2)


def test_a_batch_that_touches_one_day_leaves_the_files_of_the_others(lake: Lake) -> None:
    events = [Event(at=BEGINNING + n * DAY, session=f"s{n}") for n in range(5)]
    lake.bring(events)
    before = set(DeltaTable(lake.folder / "gold/kpi_hourly").file_uris())

    lake.bring([Event(at=BEGINNING + 4 * DAY + HOUR)])

    after = set(DeltaTable(lake.folder / "gold/kpi_hourly").file_uris())
    assert len(before & after) == 4
