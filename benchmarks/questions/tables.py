"""Writes the tables that the questions read, as the platform does: one commit per day in silver, gold sorted by key."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.commits import append
from benchmarks.questions.events import DayOfEvents
from gamelake.contract.aggregates import AggregateSpec, Over, Refresh
from gamelake.contract.games import GamesContract
from gamelake.delta.columns import as_delta
from gamelake.layers.bronze import BRONZE_SCHEMA
from gamelake.layers.dead_letters import dead_letter_schema
from gamelake.layers.silver import EVENT_DATE
from gamelake.model.naming import DEAD_LETTERS, SILVER_EVENTS, game_table
from gamelake.objects.store import Location, Store
from gamelake.scans.sql_engine import engine
from gamelake.serving.gold.definition import PARTITION, define
from gamelake.serving.gold.runs import split
from gamelake.serving.kpis.refresh import KpiRefresh

# The game whose own table has questions.
ONE_GAME, ONE_TITLE = "kart_rumble", "Kart Rumble"
_GAME = "game_name"


@dataclass(slots=True)
class LakehouseWriter:
    """Writes a lakehouse of known size; gold is written at the end, from the aggregates of each day."""

    location: Location
    contract: GamesContract
    threads: int
    rows_per_file: int = 1_000_000
    _store: Store = field(init=False)
    _parts: dict[str, list[pa.Table]] = field(init=False)

    def __post_init__(self) -> None:
        """Open the store; nothing is written yet."""
        self._store = Store(self.location)
        self._parts = {spec.name: [] for spec in self.contract.aggregates}

    def add(self, day: DayOfEvents) -> int:
        """Commit a day's events to silver, and aggregate them for gold; returns their number."""
        self._commit(SILVER_EVENTS, day.events, str(day.day))
        mine = pc.equal(day.events.column(_GAME), ONE_TITLE)
        own = day.events.filter(mine)
        for name in day.details.column_names:
            own = own.append_column(name, day.details.column(name).filter(mine))
        self._commit(game_table(ONE_GAME), own, str(day.day))
        rows = day.events.append_column(EVENT_DATE, pa.repeat(pa.scalar(day.day), len(day.events)))
        with engine(self.threads) as sql:
            sql.give("day", rows)
            for spec in self.contract.aggregates:
                self._parts[spec.name].append(sql.table(define(_of_all_games(spec)).over("day")))
        return len(rows)

    def finish(self, emit: Callable[[str], None]) -> None:
        """Write gold with its KPIs, and a table of dead letters with one row."""
        letters = pa.table({"reason": ["unroutable"], "detail": ["no table takes this game_name"]})
        schema = dead_letter_schema(BRONZE_SCHEMA)
        rest = [pa.nulls(1, schema.field(name).type) for name in schema.names[2:]]
        columns = [*letters.columns, *rest]
        self._commit(DEAD_LETTERS, pa.Table.from_arrays(columns, schema=schema), "2026-01-01", "ingest_date")
        for spec in self.contract.aggregates:
            rows = pa.concat_tables(self._parts.pop(spec.name))
            if spec.refresh is Refresh.MERGE:
                with engine(self.threads) as sql:
                    sql.give("parts", rows)
                    rows = sql.table(define(_of_all_games(spec)).merging("parts"))
            emit(f"gold: {len(rows):,} rows of {spec.name}")
            if spec.over is Over.ALL_GAMES:
                self._gold(spec, "", rows)
                continue
            for game in self.contract.games:
                self._gold(spec, game.name, rows.filter(pc.equal(rows.column(_GAME), game.game_name)).drop([_GAME]))
        emit(f"KPIs: {KpiRefresh(self._store)().days} days of games")

    def _gold(self, spec: AggregateSpec, game: str, rows: pa.Table) -> None:
        if not len(rows):
            return
        rows = rows.sort_by([(key, "ascending") for key in spec.group_by]).combine_chunks()
        parts = list[tuple[pa.Table, str | None]]()
        if spec.refresh is Refresh.MERGE:
            parts += [(part, None) for part in split(rows, spec.group_by)]
        else:
            days = rows.column(PARTITION).unique()
            of_days = (rows.filter(pc.equal(rows.column(PARTITION), day)).drop([PARTITION]) for day in days)
            parts += [(part, str(day)) for part, day in zip(of_days, days.to_pylist(), strict=True)]
        append(self._store, spec.table(game), parts, PARTITION)

    def _commit(self, table: str, rows: pa.Table, day: str, partition: str = EVENT_DATE) -> None:
        kept = pa.Table.from_batches([as_delta(batch) for batch in rows.combine_chunks().to_batches()])
        append(self._store, table, [(part, day) for part in _parts(kept, self.rows_per_file)], partition)


def _of_all_games(spec: AggregateSpec) -> AggregateSpec:
    if spec.over is Over.ALL_GAMES:
        return spec
    return msgspec.structs.replace(spec, group_by=(_GAME, *spec.group_by))


def _parts(rows: pa.Table, size: int) -> Iterator[pa.Table]:
    for start in range(0, len(rows), size):
        yield rows.slice(start, size).combine_chunks()
