"""Measure what a refresh of the all-games tables costs as the number of players per day grows."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
from deltalake import write_deltalake

from benchmarks.documents import Report, circumstances, subjects_table
from benchmarks.gold.suite import QUICK, GoldSizes, contract
from benchmarks.harness import Benchmark, Run
from benchmarks.results import BenchmarkError, Measurement, Values
from gamelake.contract.games import GamesContract
from gamelake.model.arrays import Ints
from gamelake.model.naming import SILVER_EVENTS
from gamelake.objects.store import Location, Store
from gamelake.serving.gold.refresh import GoldRefresh, Refreshed
from gamelake.serving.gold.runner import GoldTables, attempt

DAY = "refresh of all games' tables"
TABLES = ("gold/all_player_days", "gold/all_sessions", "gold/kpi_hourly")
_MIDNIGHT = datetime(2026, 11, 1, tzinfo=UTC)
_EVENING = 20 * 3_600


class DayOfPlayers:
    """silver/events of one day, on which each player of any game had one session.

    Args:
        lake: the lakehouse.
        contract: its games, which have equal shares of the players.
        players: their number.
    """

    def __init__(self, lake: Location, contract: GamesContract, players: int) -> None:
        self._place = lake.child(SILVER_EVENTS)
        self._random = np.random.default_rng(players)
        self._games = pa.array([game.game_name for game in contract.games])
        self._gamers, self._sessions = (
            pa.array([f"{value:032x}" for value in self._random.integers(0, 2**62, players)]) for _ in range(2)
        )
        self._append(np.arange(players), self._random.integers(0, _EVENING, players))

    def change(self, players: int) -> None:
        """Commit one evening event for each of `players` players."""
        chosen = self._random.choice(len(self._gamers), players, replace=False)
        self._append(chosen, self._random.integers(_EVENING, _EVENING + 60, players))

    def _append(self, players: Ints, seconds: Ints) -> None:
        count = len(players)
        times = pa.array(np.sort(seconds) * 1_000_000 + int(_MIDNIGHT.timestamp()) * 1_000_000)
        rows = {
            "event_time": times.cast(pa.timestamp("us", "UTC")),
            "event_name": pa.repeat("level_completed", count),
            "game_name": self._games.take(pa.array(players % len(self._games))),
            "gamer_id": self._gamers.take(pa.array(players)),
            "session_id": self._sessions.take(pa.array(players)),
            "platform": pa.array(["ios", "android"]).take(pa.array(players % 2)),
            "app_version": pa.repeat("1.10.2", count),
            "amount": pa.nulls(count, pa.float64()),
            "ingest_time": times.cast(pa.timestamp("us", "UTC")),
            "event_date": pa.repeat(pa.scalar(_MIDNIGHT.date()), count),
        }
        write_deltalake(self._place, pa.table(rows), mode="append", partition_by=["event_date"])


def measure(run: Run[GoldSizes]) -> Iterator[Measurement]:
    """Measure refreshes after the same change to days of different sizes.

    Raises:
        BenchmarkError: a refresh failed.
    """
    sizes = run.settings
    for players in sizes.day_players:
        with TemporaryDirectory(dir=run.folder) as folder:
            lake = Location(uri=Path(folder).as_uri())
            silver = DayOfPlayers(lake, contract(), players)
            tables = [each for each in GoldTables(Store(lake), contract()).now() if each.table in TABLES]
            for table in tables:
                _refreshed(table)
            for number in range(1, sizes.changes + 1):
                silver.change(sizes.day_changed)
                for table in tables:
                    values = _timed(table) | {"players of the day": players}
                    subject = f"`{table.table}`, {players:,} players"
                    run.emit(f"{subject}: {values}")
                    yield Measurement(part=DAY, subject=subject, round=number, values=values)


def _refreshed(table: GoldRefresh) -> Refreshed:
    result = attempt(table)
    if not isinstance(result, Refreshed):
        raise BenchmarkError(f"a refresh of gold ended with {result}")
    return result


def _timed(table: GoldRefresh) -> Values:
    started = time.process_time()
    done = _refreshed(table)
    cpu = time.process_time() - started
    return {"s": round(done.seconds, 3), "CPU s": round(cpu, 3), "rows written": done.rows_written}


BENCHMARK = Benchmark(
    name="gold-day",
    measures="Measure refreshes of the tables of all games, by the players of the day.",
    settings=GoldSizes(),
    quick=QUICK,
    measure=measure,
    report=Report(
        appendix=(
            circumstances("tables on the local disk, one thread"),
            subjects_table(DAY, "table", "s", "CPU s", "rows written"),
        )
    ),
)
