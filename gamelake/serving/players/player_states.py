"""Keeps the states of all players up to date with gold's player days, and collects the players to evaluate."""

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

import numpy as np
import pyarrow as pa

from gamelake.model.arrays import Ints
from gamelake.objects.store import Store
from gamelake.scans.sql_engine import Engine
from gamelake.serving.kpis.numbers import PLAYER_KEY, KnownPlayers, Numbers
from gamelake.serving.kpis.refresh import KpiRefresh
from gamelake.serving.kpis.table_files import TableFilesOf
from gamelake.serving.kpis.tables import MONTH
from gamelake.serving.players.player_days import PlayerDays
from gamelake.serving.players.state import GameState, as_days, merged, of_each_game
from gamelake.serving.players.statements import CHANGES, RECENT_SUMS, WINDOWS

_EPOCH = date(1970, 1, 1)
# Comparing more files takes more memory than computing everything again.
_MOST_COMPARED_BYTES = 32 * 2**20
# The table of players has all names. While Kafka is down, more names are not kept.
_MOST_NAMES = 200_000
_GAMES = "SELECT DISTINCT game_name FROM (SELECT game_name FROM came UNION ALL SELECT game_name FROM went)"


@dataclass(slots=True)
class Pending:
    """The players of a game who must be evaluated in the next successful refresh.

    Attributes:
        numbers: the players; None for all of the game.
        names: (number, gamer_id) of some of the players, which saves a look-up; at most about `_MOST_NAMES`.
    """

    numbers: Numbers | None = field(default_factory=lambda: np.zeros(0, np.uint32))
    names: list[pa.Table] = field(default_factory=list)

    def add(self, numbers: Numbers) -> None:
        """Add the numbers of players: uint32, in any order."""
        if self.numbers is not None:
            self.numbers = merged([self.numbers, numbers])

    def keep_names(self, names: pa.Table) -> None:
        """Keep the names of some players, unless there are too many: number (uint32), gamer_id (string)."""
        if self.numbers is not None and sum(map(len, self.names)) + len(names) <= _MOST_NAMES:
            self.names.append(names)


@dataclass(slots=True)
class PlayerStates:
    """The states of the players of all games.

    Attributes:
        store: the lakehouse.
        kpis: the refresh of KPIs, which numbers the players; it must run first.
        progress: is called after each game.
        rebuild_seconds: the shortest time between two attempts to compute broken games again.
        of_game: the state of each game's players, by title.
        pending: the players to evaluate, by title.
        broken: the games that have players without numbers, because the game's KPIs have failed.
        generation: the id of the players' numbers.
    """

    store: Store
    kpis: KpiRefresh
    progress: Callable[[], None] = lambda: None
    rebuild_seconds: float = 60.0
    of_game: dict[str, GameState] = field(default_factory=dict)
    pending: dict[str, Pending] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    generation: str = ""
    _days: PlayerDays = field(init=False)
    _known: KnownPlayers | None = None
    _next_rebuild: float = 0.0

    def __post_init__(self) -> None:
        """Read nothing yet."""
        self._days = PlayerDays(self.store)

    def evaluate_all(self) -> None:
        """Add all players to the pending ones."""
        for game in self.of_game:
            self.pending[game] = Pending(numbers=None)

    def settle(self, incomplete: Collection[str]) -> None:
        """Forget the pending players, except those of broken and incomplete games."""
        self.pending = {game: Pending(numbers=None) for game in self.broken | set(incomplete)}

    def include(self, games: Iterable[str]) -> None:
        """Add games that may no longer have players, and mark their former members for evaluation."""
        for game in games:
            if game not in self.of_game:
                self.of_game[game] = GameState(game, self._today(game))
                self.pending[game] = Pending(numbers=None)

    def follow(self, players: TableFilesOf, generation: str, sql: Engine) -> None:
        """Update the states of all players.

        Args:
            players: the table of players' numbers, opened.
            generation: the id of these numbers.
            sql: the engine that computes changes.
        """
        known = self.kpis.known
        if known is not self._known or generation != self.generation:
            self._forget()
        self._known, self.generation = known, generation
        known.follow(players, sql)
        try:
            self._take_changes(sql)
            self._begin_days(sql)
        except BaseException:
            # The states may have only part of the changes.
            self._forget()
            raise

    def _forget(self) -> None:
        self.of_game.clear()
        self.pending.clear()
        self.broken.clear()
        self._days = PlayerDays(self.store)

    def _take_changes(self, sql: Engine) -> None:
        changes = self._days.advance()
        if changes is None or (changes.went and changes.bytes > _MOST_COMPARED_BYTES):
            self._forget()
            changes = self._days.begin()
        for part in changes.parts():
            self._days.give(sql, "came", part.came)
            self._days.give(sql, "went", part.went)
            self._apply(sql, sql.table(_GAMES).column("game_name").to_pylist(), self.broken)
        if self.broken and time.monotonic() >= self._next_rebuild:
            self._next_rebuild = time.monotonic() + self.rebuild_seconds
            broken, self.broken = self.broken, set()
            self._rebuild_games(sql, broken)

    def _rebuild_games(self, sql: Engine, games: set[str]) -> None:
        """Compute broken games again from all their player days."""
        for game in games:
            self.of_game.pop(game, None)
        self._days.give_games(sql, "came", games)
        self._days.give(sql, "went", ())
        self._apply(sql, sorted(games), ())

    def _apply(self, sql: Engine, games: Sequence[str | None], skipped: Collection[str]) -> None:
        """Add the changes between the relations `went` and `came` to the states of games."""
        titles = [game for game in games if game is not None and game not in skipped]
        self._give_clock(sql, titles)
        again: dict[str, pa.Array] = {}
        for game, changes in of_each_game(sql.table(CHANGES)):
            if game in titles:
                redone = self._apply_to(game, changes)
                if len(redone):
                    again[game] = pa.array(redone)
            self.progress()
        for game, keys in again.items():
            self._apply_again(sql, game, keys)

    def _apply_to(self, game: str, changes: pa.Table) -> Ints:
        assert self._known is not None  # noqa: S101 # `follow` sets it
        numbers, known = self._known.find(changes.column("key").to_numpy())
        applied = self.of_game[game].apply(numbers, known, changes)
        pending = self.pending.setdefault(game, Pending())
        pending.add(applied.numbers)
        names = pa.table({"number": numbers, "gamer_id": changes.column("gamer_id")})
        pending.keep_names(names.filter(pa.array(known)))
        return applied.again

    def _apply_again(self, sql: Engine, game: str, keys: pa.Array) -> None:
        """Compute some players of a game from all their days."""
        state = self.of_game[game]
        former = state.places_of(keys.to_numpy())
        state.remove(former)
        self.pending[game].add(former)
        self._days.give_players(sql, "came", keys, PLAYER_KEY)
        self._days.give(sql, "went", ())
        self._give_clock(sql, [game])
        for title, changes in of_each_game(sql.table(CHANGES)):
            if title == game and len(self._apply_to(game, changes)):
                # These players have no numbers: the KPIs of the game have failed.
                self.broken.add(game)

    def _give_clock(self, sql: Engine, games: Sequence[str]) -> None:
        self.include(games)
        sql.give("clock", as_days({game: self.of_game[game].today for game in games}))

    def _today(self, game: str) -> int:
        return (self.kpis.zones.zone(game).day(self.kpis.now()) - _EPOCH).days

    def _begin_days(self, sql: Engine) -> None:
        """Compute the windows of games in which a new day has begun, and mark all their players for evaluation."""
        # The state of a broken game lacks players, and is computed again as a whole.
        begun = {
            game: today
            for game, state in self.of_game.items()
            if game not in self.broken and (today := self._today(game)) > state.today
        }
        if not begun:
            return
        first = _EPOCH + timedelta(days=min(begun.values()) - MONTH + 1)
        self._days.give_since(sql, "recent", first)
        sql.give("clock", as_days(begun))
        sums = dict(of_each_game(sql.table(RECENT_SUMS)))
        assert self._known is not None  # noqa: S101 # `follow` sets it
        for game, today in begun.items():
            rows = sums.get(game, _no_sums())
            numbers, known = self._known.find(rows.column("key").to_numpy())
            self.of_game[game].set_windows(today, numbers[known], rows.filter(pa.array(known)))
            self.pending[game] = Pending(numbers=None)
            self.progress()


def _no_sums() -> pa.Table:
    return pa.table({name: pa.array([], pa.int64()) for name in ("key", *WINDOWS)})
