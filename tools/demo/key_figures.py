"""Key figures of the games (players, sessions, bookings) from the rows that a run added to silver."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from gamelake.layers.silver import COMMON_SCHEMA
from gamelake.model.naming import SILVER_EVENTS
from gamelake.storage.datasets import dataset
from gamelake.storage.delta_log import FileEntry
from gamelake.storage.manifests import BatchManifest, TableFiles
from gamelake.storage.sql_engine import Engine, engine, without_zones
from gamelake.storage.store import Location

_THREADS, _BINS = 2, 40
_COLUMNS = ("event_time", "event_name", "game_name", "gamer_id", "session_id", "amount", "ingest_time")
# The same definitions as the KPI tables: event time, player, payer, session.
_GAMES = """
SELECT game_name, count(*) AS events, count(DISTINCT gamer_id) AS players, count(DISTINCT session_id) AS sessions,
  count(DISTINCT gamer_id) FILTER (WHERE event_name = 'purchase') AS payers,
  CAST(coalesce(sum(CAST(amount AS DECIMAL(18, 6))), 0) AS DOUBLE) AS bookings
FROM events GROUP BY game_name ORDER BY bookings DESC, game_name
"""
# A few events are days late: the time before the first of a hundred is not shown.
_COURSE = f"""
WITH placed AS (SELECT epoch(least(event_time, ingest_time)) AS moment, amount FROM events),
shown AS (SELECT quantile_disc(moment, 0.03) AS first, greatest(max(moment) - first, 1) AS long FROM placed)
SELECT CAST(least(floor((moment - first) / long * {_BINS}), {_BINS - 1}) AS BIGINT) AS bin,
  any_value(long) / {_BINS} AS seconds, count(*) AS events,
  CAST(coalesce(sum(CAST(amount AS DECIMAL(18, 6))), 0) AS DOUBLE) AS bookings
FROM placed CROSS JOIN shown WHERE moment >= first GROUP BY bin ORDER BY bin
"""  # noqa: S608 # of constants


@dataclass(frozen=True, slots=True, kw_only=True)
class GameKeyFigures:
    """Key figures of a game in one run; bookings in US dollars."""

    game: str
    events: int
    players: int
    sessions: int
    payers: int
    bookings: float

    @property
    def conversion(self) -> float:
        """Share of the players who paid."""
        return self.payers / self.players if self.players else 0.0

    @property
    def bookings_per_player(self) -> float:
        """Mean bookings per player, in US dollars."""
        return self.bookings / self.players if self.players else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeBin:
    """Events and bookings between two event times, in seconds since the start of the first bin."""

    begins: float
    ends: float
    events: int
    bookings: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFigures:
    """All games of a run, the one with the highest bookings first, and their events over event time."""

    games: tuple[GameKeyFigures, ...] = ()
    course: tuple[TimeBin, ...] = field(default=())


def key_figures(lakehouse: Location, manifests: Iterable[BatchManifest]) -> KeyFigures:
    """Compute the key figures of the rows that these batches added to `silver/events`."""
    entries = [entry for manifest in manifests for entry in manifest.tables if entry.table == SILVER_EVENTS]
    with engine(_THREADS) as sql:
        _give(sql, lakehouse, entries)
        games = tuple(
            GameKeyFigures(game=row.pop("game_name"), **row) for row in sql.table(_GAMES).to_pylist() if row["events"]
        )
        return KeyFigures(games=games, course=tuple(map(_time_bin, sql.table(_COURSE).to_pylist())))


def _give(sql: Engine, lakehouse: Location, entries: Iterable[TableFiles]) -> None:
    files = [FileEntry(file.path, file.size, {}) for entry in entries for file in entry.files]
    columns = without_zones(COMMON_SCHEMA)
    rows = dataset(lakehouse, SILVER_EVENTS, columns, files).to_table(columns=list(_COLUMNS))
    sql.give("events", rows)


def _time_bin(row: dict[str, float]) -> TimeBin:
    begins = row["bin"] * row["seconds"]
    return TimeBin(
        begins=round(begins, 3),
        ends=round(begins + row["seconds"], 3),
        events=int(row["events"]),
        bookings=round(row["bookings"], 2),
    )
