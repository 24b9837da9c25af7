"""Measures how the cost of a batch grows with players it does not change: `python -m benchmarks.scaling.known_players`.

Each batch changes the same number of players, of however many are known. The batch of live operations and the refresh
of its table are the tasks' own code, in this process. CPU seconds are of all threads of the process, so that what else
the machine does changes them little.
"""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.harness import Benchmark, Run, alternate, main, option
from benchmarks.results import Measurement, Values
from gamelake.model.arrays import Words
from gamelake.objects.store import Location, Store
from gamelake.serving.live_ops.plan import BUCKETS, Base, StatePlan
from gamelake.serving.live_ops.states.hour import PURCHASES_SCHEMA
from gamelake.serving.live_ops.states.memory import Share
from gamelake.serving.live_ops.states.player_table import PlayerStateTable, write_bucket
from gamelake.serving.live_ops.states.players import (
    PLAYER_EVENTS_SCHEMA,
    STATE_SCHEMA,
    PlayerChanges,
    advanced,
    blank,
    in_order,
)
from gamelake.serving.live_ops.states.refreshing import RefreshTask
from gamelake.serving.live_ops.states.state_files import file_prefix, write_change
from gamelake.serving.live_ops.states.updating import keys_of_players

_GAMES = 100
_FOLDER, _SEED = "_gamelake/streams/live_ops/state", "seed"
_MOMENT = 1_782_820_800_000_000  # microseconds since 1970


def _cost(work: Callable[[], object]) -> Values:
    """Seconds and CPU seconds of a call."""
    started, cpu_started = time.perf_counter(), time.process_time()
    work()
    return {"CPU s": time.process_time() - cpu_started, "s": time.perf_counter() - started}


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
        keys: Words = changes.keys()
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


@dataclass(frozen=True, slots=True)
class KnownPlayersSettings:
    """Options of the benchmark."""

    players: tuple[int, ...] = option((10_000, 100_000, 1_000_000), "known players")
    changed: int = option(1_000, "players of each batch")
    runs: int = option(5, "refreshes, and ten times as many batches")


def measure(run: Run[KnownPlayersSettings]) -> Iterator[Measurement]:
    """Measure batches of live operations, and refreshes of the table of players."""
    runs = run.settings.runs
    for players in run.settings.players:
        place = Location(uri=(run.folder / str(players)).as_uri())
        worker, subject = LiveOpsWorker.filled(Store(place), players, run.settings.changed), f"{players:,} players"
        batches = {subject: lambda number, worker=worker: _cost(lambda: worker.take(number + 1))}
        # So many batches that states are merged several times.
        yield from alternate("a live-ops batch", batches, 10 * runs, run.emit)
        refreshes = {subject: lambda number, worker=worker: _cost(lambda: worker.refresh(number))}
        yield from alternate("a refresh", refreshes, runs, run.emit)


BENCHMARK = Benchmark(
    name="scaling-known-players",
    measures="Measure how the cost of a batch grows with players it does not change.",
    settings=KnownPlayersSettings(),
    quick=KnownPlayersSettings(players=(1_000,), changed=100, runs=1),
    measure=measure,
)


if __name__ == "__main__":
    sys.exit(main(BENCHMARK))
