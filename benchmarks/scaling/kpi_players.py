"""Measure a refresh of KPIs and of segments as a game's players grow: `python -m benchmarks.scaling.kpi_players`.

Gold's tables are written as the gold job leaves them: each day has a tenth of the game's players, in files sorted by
key. Then new players play on the newest day, and all files of that day are replaced, as by a merge.
"""

import resource
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from multiprocessing import get_context

import numpy as np
import pyarrow as pa

from benchmarks.harness import Benchmark, Run, main, option
from benchmarks.results import Measurement, Values
from gamelake.contract.games import load_games
from gamelake.delta.columns import MICROSECONDS_UTC
from gamelake.delta.data_files import DataFile
from gamelake.delta.declared_table import DeclaredTable
from gamelake.delta.tables import open_table
from gamelake.objects.store import Location, Store
from gamelake.scans.sql_engine import engine
from gamelake.serving.gold.runs import ROWS_PER_RUN, runs_of
from gamelake.serving.kpis.refresh import KpiRefresh
from gamelake.serving.kpis.sets import GameSets, window
from gamelake.serving.kpis.sources import HOURS, PLAYER_DAYS, SESSIONS
from gamelake.serving.kpis.table_files import TableFilesOf
from gamelake.serving.kpis.tables import DIMENSIONS, MONEY, MONTH
from gamelake.serving.players.contract import SEGMENTS_FILE, usable_segments
from gamelake.serving.players.refresh import SegmentRefresh
from tools.embedded.service import REPOSITORY

_GAME = "Archery Duel"
_FIRST = date(2026, 1, 1)
_MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)
_NEW_FROM = 50_000_000


@dataclass(frozen=True, slots=True)
class KpiPlayerSettings:
    """Options of the benchmark."""

    players: tuple[int, ...] = option((100_000, 1_000_000, 10_000_000), "players of a game")
    days: int = option(31, "days of the game; at least 28 have whole MAU")
    changed: int = option(10_000, "new players of each refresh")
    runs: int = option(5, "refreshes")


def _table(name: str, schema: pa.Schema) -> DeclaredTable:
    types = [MICROSECONDS_UTC if pa.types.is_timestamp(field.type) else field.type for field in schema]
    columns = {each: (kind, each) for each, kind in zip(schema.names, types, strict=True)}
    return DeclaredTable(name, "", ("event_date",), columns)


def _player_days(day: date, players: np.ndarray) -> pa.Table:
    count = len(players)
    with engine(threads=1) as sql:
        sql.give("players", pa.table({"player": players}))
        gamers = sql.table("SELECT printf('%032d', player) AS gamer_id FROM players").column("gamer_id")
    rows = {
        "event_date": pa.repeat(pa.scalar(day), count),
        "game_name": pa.repeat(pa.scalar(_GAME), count),
        "gamer_id": gamers,
        "event_count": pa.repeat(pa.scalar(20), count),
        "purchase_count": pa.array((players % 30 == 0).astype(np.int64)),
        "bookings": pa.array(np.where(players % 30 == 0, players % 7 + 1, 0)).cast(pa.decimal128(25, 6)).cast(MONEY),
        **_first_values(day, players),
    }
    return pa.table(rows)


def _first_values(day: date, players: np.ndarray) -> dict[str, pa.Array]:
    """Return 60 countries of which few are large, 3 platforms, 5 versions of a day, and 8 sources or none."""
    number = (day - _FIRST).days
    values = {
        "country": np.minimum(1_000_000 // (players % 9_973 + 1) % 60, players % 60),
        "platform": players % 3,
        "app_version": number // 14 + np.minimum(players % 11, 4),
        "source": np.where(players % 2, players % 8, -1),
    }
    moment = f"{int(_MIDNIGHT.timestamp()) + number * 86_400:010d}000000"
    texts = {name: [None, *(f"{moment}{name} {value}" for value in range(200))] for name in DIMENSIONS}
    return {f"first_{name}": pa.array(texts[name]).take(pa.array(values[name] + 1)) for name in DIMENSIONS}


def _sessions(of_players: pa.Table, day: date) -> pa.Table:
    began = _MIDNIGHT + (day - _FIRST)
    lengths = np.arange(len(of_players)) % 3_600
    times = {"began": began, "ended": began + timedelta(hours=1)}
    columns = {name: pa.repeat(pa.scalar(moment, MICROSECONDS_UTC), len(lengths)) for name, moment in times.items()}
    columns["ended"] = pa.array(int(began.timestamp()) * 1_000_000 + lengths * 1_000_000).cast(MICROSECONDS_UTC)
    rows = of_players.drop_columns(["purchase_count", "bookings"])
    for name, column in {"session_id": of_players.column("gamer_id"), **columns}.items():
        rows = rows.append_column(name, column)
    return rows


def _hours(day: date) -> pa.Table:
    rows = [
        {"event_date": day, "game_name": _GAME, "events": 1_000 + n, "purchases": 10, "bookings": 99} for n in range(24)
    ]
    return pa.Table.from_pylist(rows, HOURS.reads)


def _day(tables: dict[str, TableFilesOf], day: date, players: np.ndarray) -> dict[str, list[DataFile]]:
    """Write the files of a day, by table."""
    of_players = _player_days(day, players)
    rows = {PLAYER_DAYS.name: of_players, SESSIONS.name: _sessions(of_players, day), HOURS.name: _hours(day)}
    return {name: [table.write(part, {}) for part in _split(rows[name], table)] for name, table in tables.items()}


def _split(rows: pa.Table, table: TableFilesOf) -> Iterator[pa.Table]:
    schema = table.definition.schema
    for start in range(0, len(rows), ROWS_PER_RUN):
        yield rows.slice(start, ROWS_PER_RUN).select(schema.names).cast(schema)


def _active(players: int, day: int, new: int = 0) -> np.ndarray:
    found = np.random.default_rng(day).choice(players, players // 10, replace=False)
    return np.append(np.sort(found), np.arange(_NEW_FROM, _NEW_FROM + new))


def _gold(store: Store) -> dict[str, TableFilesOf]:
    sources = (PLAYER_DAYS, SESSIONS, HOURS)
    return {source.name: TableFilesOf(store, _table(source.name, source.reads)) for source in sources}


def make(location: Location, players: int, days: int) -> None:
    """Make gold's tables."""
    tables = _gold(Store(location))
    made: dict[str, list[DataFile]] = {name: [] for name in tables}
    for number in range(days):
        for name, files in _day(tables, _FIRST + timedelta(number), _active(players, number)).items():
            made[name] += files
    for name, table in tables.items():
        table.open()
        table.commit(made[name], [], {})


def change(location: Location, players: int, days: int, new: int) -> None:
    """Replace the files of the newest day: more players are in them."""
    tables = _gold(Store(location))
    last = _FIRST + timedelta(days - 1)
    files = _day(tables, last, _active(players, days - 1, new))
    for name, table in tables.items():
        table.open()
        runs = runs_of(open_table(location, table.path), ("event_date",))
        table.commit(files[name], [run.file for run in runs if run.bounds == (((False, last),),) * 2], {})


def refreshes(location: Location, players: int, settings: KpiPlayerSettings) -> Values:
    """Compute all, then refresh after changes; in a process of its own, for its memory."""
    refresh = KpiRefresh(Store(location))
    found = {"CPU s of all": _seconds(refresh)}
    taken = []
    for run in range(settings.runs):
        _change(location, players, settings, settings.changed * (run + 1))
        taken.append(_seconds(refresh))
    found["of a refresh"] = float(np.median(taken))
    last = _FIRST + timedelta(settings.days - 1)
    asked = KpiRefresh(Store(location))
    asked.tables["kpi_player_sets"].open()
    asked.sets.open()
    for name in ("of a day's MAU", "again"):
        found[name] = _seconds(lambda: window(GameSets(_GAME, asked.sets), last, MONTH))
    found["MiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return found


def segments_of(location: Location, players: int, settings: KpiPlayerSettings) -> Values:
    """Compute the segments of all players, then of changed ones, without Kafka; in a process of its own."""
    games = load_games(REPOSITORY / "contracts/games.yaml")
    kpis = KpiRefresh(Store(location))
    kpis()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refresh = SegmentRefresh(Store(location), games, kpis)
    refresh.use(usable_segments(REPOSITORY / "contracts" / SEGMENTS_FILE, games).segments, ())
    found = {"CPU s of all": _seconds(refresh)}
    taken = []
    for run in range(settings.runs):
        _change(location, players, settings, settings.changed * (settings.runs + run + 1))
        kpis()
        taken.append(_seconds(refresh))
    found["of a refresh"] = float(np.median(taken))
    found["more MiB"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return found


def _change(location: Location, players: int, settings: KpiPlayerSettings, new: int) -> None:
    process = get_context("spawn").Process(target=change, args=(location, players, settings.days, new))
    process.start()
    process.join()


def _seconds(work: Callable[[], object]) -> float:
    """Seconds of a core: those by the clock depend on what else the machine does."""
    started = time.process_time()
    work()
    return time.process_time() - started


def measure(run: Run[KpiPlayerSettings]) -> Iterator[Measurement]:
    """Measure games of different sizes, each in a process of its own."""
    for players in run.settings.players:
        place = Location(uri=(run.folder / str(players)).as_uri())
        make(place, players, run.settings.days)
        for part, work in (("KPIs of a game", refreshes), ("segments of a game", segments_of)):
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                values = pool.submit(work, place, players, run.settings).result()
            yield Measurement(part=part, subject=f"{players:,} players", values=values)


BENCHMARK = Benchmark(
    name="scaling-kpi-players",
    measures="Measure a refresh of KPIs and of segments as a game's players grow.",
    settings=KpiPlayerSettings(),
    quick=KpiPlayerSettings(players=(10_000,), days=3, changed=100, runs=1),
    measure=measure,
)


if __name__ == "__main__":
    sys.exit(main(BENCHMARK))
