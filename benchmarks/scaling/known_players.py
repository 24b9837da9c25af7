"""Measures how the cost of a batch grows with players it does not change: `python -m benchmarks.scaling.known_players`.

Each batch changes the same number of players, of however many are known. The KPI batch is the driver's own code over
tables that are filled first; the live-ops batch and the refresh of its table are the tasks' own code, in this process.
CPU seconds are of all threads of the process, so that what else the machine does changes them little.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from statistics import median

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gamelake.serving.kpis import definitions as kpi
from gamelake.serving.kpis.aggregation import aggregate
from gamelake.serving.kpis.day_tables import DayTable
from gamelake.serving.kpis.definitions import ExactUpTo
from gamelake.serving.kpis.known_players import KnownPlayers
from gamelake.serving.live_ops.hour import PURCHASES_SCHEMA
from gamelake.serving.live_ops.memory import Share
from gamelake.serving.live_ops.plan import BUCKETS, Base, StatePlan
from gamelake.serving.live_ops.player_table import PlayerStateTable, write_bucket
from gamelake.serving.live_ops.players import (
    PLAYER_EVENTS_SCHEMA,
    STATE_SCHEMA,
    Keys,
    PlayerChanges,
    advanced,
    blank,
    in_order,
)
from gamelake.serving.live_ops.refreshing import RefreshTask
from gamelake.serving.live_ops.state_files import file_prefix, write_change
from gamelake.serving.live_ops.updating import keys_of_players
from gamelake.storage.store import Location, Store

_TODAY = date(2026, 6, 30)
_GAMES = 100
_FOLDER, _SEED = "_gamelake/streams/live_ops/state", "seed"
_MOMENT = 1_782_820_800_000_000  # microseconds since 1970: the beginning of _TODAY


@dataclass(frozen=True, slots=True)
class Cost:
    """Medians of the seconds and of the CPU seconds of some runs."""

    seconds: float
    cpu: float

    def __str__(self) -> str:
        """As two cells of a table."""
        return f"{self.seconds:.2f} | {self.cpu:.2f}"


def cost_of(runs: int, run: Callable[[int], object]) -> Cost:
    """What some runs take, which get their numbers, after one that is not counted."""
    seconds, cpu = [], []
    for number in range(runs + 1):
        started, cpu_started = time.perf_counter(), time.process_time()
        run(number)
        seconds.append(time.perf_counter() - started)
        cpu.append(time.process_time() - cpu_started)
    return Cost(median(seconds[1:]), median(cpu[1:]))


_KNOWN = f"""
  SELECT i, 'game_' || i % {_GAMES} AS game_name, md5(CAST(i AS VARCHAR)) AS gamer_id,
    DATE '{_TODAY}' - CAST(1 + i // {_GAMES} % 90 AS INTEGER) AS first_date
  FROM range({{players}}) AS known(i)"""  # noqa: S608 # numbers of this module
_PLAYED = f"""
  WITH known AS ({_KNOWN})
  SELECT DATE '{_TODAY}' - CAST(day AS INTEGER) AS event_date, game_name, gamer_id, i % 20 = 0 AS paid
  FROM known, range(1, 61) AS days(day)
  WHERE first_date <= DATE '{_TODAY}' - CAST(day AS INTEGER) AND hash(i, day) % 100 < {{active}}"""  # noqa: S608 # the same


def filled_kpis(store: Store, players: int, active: int) -> dict[str, DayTable]:
    """The KPI tables with players who were first seen in the last 90 days, of whom some percent play each day."""
    tables = {table.name: DayTable(store, table, "benchmark", ()) for table in kpi.ALL}
    with duckdb.connect() as sql:
        for definition, query in (
            (kpi.PLAYERS, f"SELECT first_date, game_name, gamer_id, 0 AS halvings FROM ({_KNOWN})"),  # noqa: S608 # the same
            (kpi.PLAYER_DAYS, _PLAYED),
        ):
            rows = sql.sql(query.format(players=players, active=active)).to_arrow_table().cast(definition.schema)
            table = tables[definition.name]
            table.open()
            table.replace(set(rows.column(definition.day).unique().to_pylist()), rows, 0)
    return tables


def kpi_facts(players: int, changed: int, batch: int) -> pa.Table:
    """What a batch brings of today: so many players with one session each, of whom every tenth is new."""
    number = np.random.default_rng(batch).choice(players, changed, replace=False)
    number[::10] += players
    hour = datetime(_TODAY.year, _TODAY.month, _TODAY.day, tzinfo=UTC) + timedelta(hours=batch % 24)
    with duckdb.connect() as sql:
        sql.register("numbers", pa.table({"i": number}))
        found = sql.sql(f"""
          WITH seen AS (SELECT 'game_' || i % {_GAMES} AS game_name, md5(CAST(i AS VARCHAR)) AS gamer_id FROM numbers)
          SELECT 'session' AS facet, game_name, gamer_id AS a, gamer_id || '-s' AS b, 5 AS events FROM seen
          UNION ALL SELECT facet, game_name, 'ios', '1.0', 5 * count(*)
          FROM seen, (VALUES ('hour'), ('arrival')) AS facets(facet) GROUP BY ALL
        """).to_arrow_table()  # noqa: S608 # the same
    rows = len(found)
    at = pa.array([hour] * rows, pa.timestamp("us", "UTC"))
    return pa.table(
        {
            "hour": at,
            **{name: found[name] for name in ("facet", "game_name", "a", "b")},
            "events": found["events"].cast(pa.int64()),
            "purchases": pa.array(np.zeros(rows, np.int64)),
            "bookings": pa.array([0] * rows).cast(pa.decimal128(28, 6)),
            "first_event": at,
            "last_event": at,
        }
    )


def kpi_batch(place: Location, players: int, active: int, changed: int, runs: int) -> Cost:
    """The cost of a batch of the KPI query."""
    tables = filled_kpis(Store(place), players, active)
    facts = [kpi_facts(players, changed, batch) for batch in range(runs + 1)]
    known = KnownPlayers()
    return cost_of(runs, lambda number: aggregate(tables, ExactUpTo(), facts[number], number + 1, known))


def known_states(players: int) -> pa.Table:
    """States of players: columns of `STATE_SCHEMA`."""
    names = [(f"game_{number % _GAMES}", f"g{number}") for number in range(players)]
    games, gamer_ids, keys = keys_of_players(names, _SEED)
    given = {"game": games, "gamer_id": gamer_ids, "sessions": pa.array(np.ones(players, np.int64))}
    rows = blank(keys)
    return pa.table({name: given.get(name, rows[name]) for name in STATE_SCHEMA.names}, schema=STATE_SCHEMA)


def player_events(states: pa.Table, batch: int) -> pa.Table:
    """One event of each of some players, in order."""
    rows = len(states)
    given = {
        "key": states["key"],
        "game": states["game"],
        "gamer_id": states["gamer_id"],
        "at": pa.array(np.full(rows, _MOMENT + batch * 2_000_000)),
        "offset": pa.array(np.arange(rows)),
        "micros": pa.nulls(rows, pa.int64()),
        "level": pa.nulls(rows, pa.int64()),
        **{name: pa.nulls(rows, pa.string()) for name in ("platform", "app_version", "country")},
    }
    columns = {
        field.name: given[field.name] if field.name in given else pa.array(np.zeros(rows), field.type)
        for field in PLAYER_EVENTS_SCHEMA
    }
    return in_order(pa.table(columns, schema=PLAYER_EVENTS_SCHEMA))


@dataclass(slots=True)
class LiveOpsWorker:
    """One share with all players, as a worker has it."""

    store: Store
    states: pa.Table
    changed: int
    plan: StatePlan

    @classmethod
    def filled(cls, store: Store, players: int, changed: int) -> "LiveOpsWorker":
        """The table filled, and the worker's memory with it."""
        states, table = known_states(players), PlayerStateTable(store, _FOLDER)
        buckets = states["key"].to_numpy() % np.uint64(BUCKETS)
        files = [
            write_bucket(store, int(each), states.filter(pa.array(buckets == each))) for each in np.unique(buckets)
        ]
        first = write_change(
            store, file_prefix(_FOLDER, 0, "change", "0of1"), states.slice(0, 0), PURCHASES_SCHEMA.empty_table()
        )
        assert table.replace(files, Base(stream=_FOLDER, batch_id=0, moment=_MOMENT, shares=(first,)))  # noqa: S101 # no other writer
        base, places = table.base()
        plan = StatePlan(
            folder=_FOLDER, seed=_SEED, batch_id=0, shares=1, moment=_MOMENT, clock=_MOMENT, base=base, files=places
        )
        Share(plan, 0, store).memory()
        return cls(store, states, changed, plan)

    def take(self, batch: int) -> None:
        """Advance the states of some players and write them down, as a task does."""
        chosen = np.random.default_rng(batch).choice(len(self.states), self.changed, replace=False)
        events = player_events(self.states.take(pa.array(chosen)), batch)
        memory = Share(self.plan, 0, self.store).memory()
        nothing = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        changes = PlayerChanges(events, np.zeros(len(events), np.bool_), *nothing, _MOMENT + batch)
        keys: Keys = changes.keys()
        states = advanced(memory.players.find(keys), changes)
        prefix = file_prefix(_FOLDER, batch, "change", "0of1")
        path = write_change(self.store, prefix, states, PURCHASES_SCHEMA.empty_table())
        memory.apply(path, states, PURCHASES_SCHEMA.empty_table())
        self.plan = StatePlan(
            folder=_FOLDER,
            seed=_SEED,
            batch_id=batch,
            shares=1,
            moment=_MOMENT,
            clock=_MOMENT,
            base=self.plan.base,
            files=self.plan.files,
            changes=(*self.plan.changes, (batch, path)),
        )

    def refresh(self, _: int) -> None:
        """Write all states into files of the table, as the task of the share does."""
        numbers = pa.RecordBatch.from_arrays([pa.array([0])], ["id"])
        (report,) = RefreshTask(self.plan, self.store.location)(iter([numbers]))
        assert pc.sum(pc.binary_length(report.column("report"))).as_py()  # noqa: S101 # it has written files


def live_ops_costs(place: Location, players: int, changed: int, runs: int) -> tuple[Cost, Cost]:
    """The cost of a batch of live operations, and of a refresh of the table of players."""
    live_ops = LiveOpsWorker.filled(Store(place), players, changed)
    # So many batches that states are merged several times.
    return cost_of(10 * runs, lambda number: live_ops.take(number + 1)), cost_of(runs, live_ops.refresh)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--players", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--changed", type=int, default=1_000, help="players of each batch")
    parser.add_argument("--active", type=int, nargs="+", default=[0, 10], help="percent of the players, each day")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    print("| known players | of them each day | a KPI batch: s | CPU s |\n| --- | --- | --- | --- |")
    for players in arguments.players:
        for active in arguments.active:
            with tempfile.TemporaryDirectory() as folder:
                place = Location(uri=Path(folder).as_uri())
                cost = kpi_batch(place, players, active, arguments.changed, arguments.runs)
            print(f"| {players:,} | {active} % | {cost} |", flush=True)
    print("\n| known players | a live-ops batch: s | CPU s | a refresh: s | CPU s |\n| --- | --- | --- | --- | --- |")
    for players in arguments.players:
        with tempfile.TemporaryDirectory() as folder:
            batch, refresh = live_ops_costs(
                Location(uri=Path(folder).as_uri()), players, arguments.changed, arguments.runs
            )
        print(f"| {players:,} | {batch} | {refresh} |", flush=True)


if __name__ == "__main__":
    main()
