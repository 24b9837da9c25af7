"""Which players are known is kept from batch to batch, and is never other than what the table has."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pyarrow.compute as pc
import pytest

from gamelake.serving.kpis import definitions as kpi
from gamelake.serving.kpis.aggregation import aggregate
from gamelake.serving.kpis.day_tables import DayTable
from gamelake.serving.kpis.definitions import ExactUpTo
from gamelake.serving.kpis.known_players import PLAYER_KEY, KnownPlayers
from gamelake.storage.sql_engine import Engine, engine
from gamelake.storage.store import Location, Store
from tests.silver_events import BEGINNING, Event, some_events
from tests.unit.serving.kpis.kpi_facts import facts_of

DAY = timedelta(days=1)


class Query:
    """A KPI query, and what it knows of the players if it keeps that."""

    def __init__(self, folder: Path, exact: ExactUpTo, known: KnownPlayers | None) -> None:
        self.store, self.exact, self.known = Store(Location(uri=folder.as_uri())), exact, known
        self.tables = {table.name: DayTable(self.store, table, "first", ()) for table in kpi.ALL}
        self.batch = 0

    @property
    def players(self) -> DayTable:
        """The table of the players, at its newest version."""
        self.tables[kpi.PLAYERS.name].open()
        return self.tables[kpi.PLAYERS.name]

    def bring(self, events: Sequence[Event]) -> None:
        """Take all these events as a batch."""
        aggregate(self.tables, self.exact, facts_of(events), self.batch, self.known)
        self.batch += 1

    def rows(self, table: str) -> list[dict[str, object]]:
        """The rows of a table, in the order of their grain."""
        self.tables[table].open()
        grain = [(name, "ascending") for name in self.tables[table].definition.grain]
        rows: list[dict[str, object]] = self.tables[table].rows().sort_by(grain).to_pylist()
        return rows


@pytest.fixture
def sql() -> Iterator[Engine]:
    with engine(threads=1) as sql:
        yield sql


@pytest.mark.parametrize("players", [pytest.param(1_000, marks=pytest.mark.slow), 12])
def test_a_query_that_keeps_them_makes_the_rows_of_one_that_reads_them_all_each_time(
    tmp_path: Path, players: int
) -> None:
    exact = ExactUpTo(players=players, sessions=20)
    keeps, reads = (
        Query(tmp_path / name, exact, known) for name, known in (("keeps", KnownPlayers()), ("reads", None))
    )
    events = some_events(600, seed=3, days=40, lateness=3 * DAY)

    for count in (20, 60, 200, 400, 600):
        for query in (keeps, reads):
            query.bring(events[:count])

    assert len(keeps.rows(kpi.PLAYERS.name)) > 0
    for table in kpi.ALL:
        assert keeps.rows(table.name) == reads.rows(table.name), table.name


def test_a_batch_reads_the_files_of_days_that_players_come_to_and_no_others(tmp_path: Path, sql: Engine) -> None:
    known = KnownPlayers()
    query = Query(tmp_path, ExactUpTo(), known)
    events = [Event(at=BEGINNING + number * DAY, gamer=f"g{number}") for number in range(20)]
    query.bring(events)
    assert known.refresh(query.players, sql) == 20

    query.bring([Event(at=BEGINNING + 19 * DAY, gamer="new")])

    assert known.refresh(query.players, sql) == 2
    assert known.refresh(query.players, sql) == 0
    assert known.depths().to_pylist() == [{"game_name": "Archery", "halvings": 0, "players": 21}]


def test_players_whom_another_writer_has_removed_are_no_longer_known(tmp_path: Path, sql: Engine) -> None:
    known = KnownPlayers()
    query = Query(tmp_path, ExactUpTo(), known)
    query.bring([Event(at=BEGINNING, gamer=name) for name in ("anna", "berta")])
    table = query.players
    known.refresh(table, sql)
    sql.give("asked", table.rows())
    asked = sql.table(f"SELECT gamer_id, {PLAYER_KEY} AS key FROM asked ORDER BY gamer_id")  # noqa: S608 # a constant
    keys = asked.column("key").to_numpy()
    assert known.first_days(keys).to_pylist() == [BEGINNING.date(), BEGINNING.date()]

    erased = DayTable(query.store, kpi.PLAYERS, "first", ())
    erased.open()
    erased.replace(erased.days(), table.rows().filter(pc.field("gamer_id") != "anna"), 7)
    known.refresh(query.players, sql)

    assert known.first_days(keys).to_pylist() == [None, BEGINNING.date()]
