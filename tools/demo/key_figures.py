"""KPIs of the games (players, sessions, bookings) from the rows that a run added to silver."""

from collections.abc import Iterable
from dataclasses import dataclass

from gamelake.contract.metrics import METRICS_FILE, load_metrics
from gamelake.delta.log.codec import FileEntry
from gamelake.delta.table_files import TableFiles
from gamelake.layers.silver import COMMON_SCHEMA
from gamelake.ledger.manifests import BatchManifest
from gamelake.model.naming import SILVER_EVENTS
from gamelake.objects.store import Location
from gamelake.scans.datasets import dataset
from gamelake.scans.sql_engine import Engine, engine, without_zones
from tools.embedded.service import CONTRACTS

_THREADS = 2
_COLUMNS = ("event_name", "game_name", "gamer_id", "session_id", "amount")
_GAMES = """
SELECT game_name, {events} AS events, {players} AS players, {sessions} AS sessions, {payers} AS payers,
  CAST(coalesce({bookings}, 0) AS DOUBLE) AS bookings
FROM events GROUP BY game_name ORDER BY bookings DESC, game_name
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GameKeyFigures:
    """KPIs of a game in one run; bookings in US dollars."""

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
class KeyFigures:
    """All games of a run, the one with the highest bookings first."""

    games: tuple[GameKeyFigures, ...] = ()


def key_figures(lakehouse: Location, manifests: Iterable[BatchManifest]) -> KeyFigures:
    """Compute the KPIs of the rows that these batches added to `silver/events`."""
    entries = [entry for manifest in manifests for entry in manifest.tables if entry.table == SILVER_EVENTS]
    with engine(_THREADS) as sql:
        _give(sql, lakehouse, entries)
        metrics = load_metrics(CONTRACTS / METRICS_FILE)
        rows = sql.table(_GAMES.format(**{each.name: metrics.sql(each) for each in metrics.metrics})).to_pylist()
        games = tuple(GameKeyFigures(game=row.pop("game_name"), **row) for row in rows if row["events"])
        return KeyFigures(games=games)


def _give(sql: Engine, lakehouse: Location, entries: Iterable[TableFiles]) -> None:
    files = [FileEntry(file.path, file.size, {}) for entry in entries for file in entry.files]
    columns = without_zones(COMMON_SCHEMA)
    rows = dataset(lakehouse, SILVER_EVENTS, columns, files).to_table(columns=list(_COLUMNS))
    sql.give("events", rows)
