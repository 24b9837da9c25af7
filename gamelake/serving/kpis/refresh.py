"""Brings the KPI tables up to date with gold's tables, by recomputing the changed days of each game.

The sets are committed last, together with the versions of gold's tables that everything was computed from. If a refresh
ends before that, the next one starts from the same point: each row depends only on gold's tables and the committed
sets.
"""

import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

import msgspec
import pyarrow as pa
from obstore.exceptions import BaseError

from gamelake.contract.time_zones import UTC_DAYS, Zones
from gamelake.delta.commits import commit_with_retry
from gamelake.model.errors import GamelakeError, StoreError
from gamelake.model.failpoints import Failpoint, Failpoints
from gamelake.model.logs import event_logger
from gamelake.objects.store import Store
from gamelake.scans.sql_engine import Engine, engine
from gamelake.serving.gold.history import TablePosition
from gamelake.serving.gold.table import SOURCE_NOTE
from gamelake.serving.kpis import tables as kpi
from gamelake.serving.kpis.cohorts import days_of
from gamelake.serving.kpis.figures import SQL, GameChange, GameKpis
from gamelake.serving.kpis.numbers import KnownPlayers, NewPlayers
from gamelake.serving.kpis.sets import GameSets, PlayerSets
from gamelake.serving.kpis.sources import GoldSources, Pair, SourceChanges
from gamelake.serving.kpis.table_files import GENERATION_NOTE, TableFilesOf

log = event_logger(__name__)

_ATTEMPTS = 10
_STEP_NOTE = "gamelake.step"
_FINGERPRINT = kpi.fingerprint(*SQL)


class KpiPosition(msgspec.Struct, frozen=True, kw_only=True):
    """The position up to which the KPIs were computed.

    Attributes:
        tables: the versions of gold's tables, by path.
        today: the day, by time zone, up to which cohorts have rows.
        step: the number of refreshes that have committed something.
        players: the version of the table of players; -1 if there is none.
        failed: days of games whose KPIs could not be computed, and are behind.
        zones: the rules of the time zones of games' days, by title; see `Zones.rules`.
    """

    tables: dict[str, TablePosition]
    today: dict[str, date]
    step: int = 0
    players: int = -1
    failed: tuple[Pair, ...] = ()
    zones: dict[str, str] = {}


class _Begun(msgspec.Struct, frozen=True):
    """The note in a commit that precedes that of the sets.

    Attributes:
        step: the refresh that the commit is part of; see `KpiPosition.step`.
        days: the days of games that the refresh computes; empty for a rebuild.
    """

    step: int
    days: tuple[Pair, ...]


class KpisRefreshed(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a refresh.

    Attributes:
        positions: the versions of gold's tables that the KPIs match, by path; empty if there are no tables.
        days: the number of days of games that were computed.
        rebuilt: True if all days were computed.
        failed: the games whose KPIs could not be computed.
        seconds: the duration of the refresh.
    """

    positions: dict[str, TablePosition] = {}
    days: int = 0
    rebuilt: bool = False
    failed: tuple[str, ...] = ()
    seconds: float = 0.0


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class KpiRefresh:
    """Refreshes the KPI tables of one lakehouse. Reuse one instance, since it keeps the index of players in memory.

    Attributes:
        store: the lakehouse.
        zones: the time zones of the games.
        now: returns the time of the platform's clock.
        progress: is called repeatedly while a refresh computes, so that a long one does not look dead.
        failpoints: where a test ends the process.
        tables: the KPI tables, by name.
        sets: the table of players' sets.
        sources: the gold tables that the KPIs are computed from.
    """

    store: Store
    zones: Zones = UTC_DAYS
    now: Callable[[], datetime] = _now
    progress: Callable[[], None] = lambda: None
    failpoints: Failpoints = field(default_factory=Failpoints)
    tables: Mapping[str, TableFilesOf] = field(init=False)
    sets: PlayerSets = field(init=False)
    sources: GoldSources = field(init=False)
    _known: KnownPlayers = field(default_factory=KnownPlayers)

    def __post_init__(self) -> None:
        """Open nothing yet."""
        self.tables = {table.name: TableFilesOf(self.store, table) for table in kpi.ALL}
        self.sets = PlayerSets(self.tables[kpi.PLAYER_SETS.name])
        self.sources = GoldSources(self.store)

    def __call__(self) -> KpisRefreshed:
        """Refresh the tables.

        Raises:
            StoreError: another writer committed first at every attempt; the tables must have one writer.
        """
        started = time.perf_counter()
        failure = StoreError("the tables gold/kpi_* have another writer too: stop it; only the gold job may write here")
        done = commit_with_retry("the tables gold/kpi_*", _ATTEMPTS, self._once, failure)
        return msgspec.structs.replace(done, seconds=time.perf_counter() - started)

    def _once(self) -> KpisRefreshed:
        # The players before the sources: a player whom an erasure removes from both meanwhile must get no new number.
        for table in self.tables.values():
            table.open()
        with engine(threads=2) as sql:
            standing = self._standing()
            changes = self.sources.since(standing.position.tables) if standing is not None else None
            if standing is not None and changes is not None:
                try:
                    return _Step(self, sql, standing, changes).run()
                except FileNotFoundError:
                    # A file that was added since then was removed again and is deleted already.
                    pass
            return self._rebuild(sql)

    def _rebuild(self, sql: Engine) -> KpisRefreshed:
        """Compute all tables from all of gold, with new numbers for the players."""
        changes = self.sources.all()
        if all(each.handle is None for each in changes.values()):
            return KpisRefreshed()
        for table in self.tables.values():
            table.make_void()
        self._known = KnownPlayers()
        anew = _Standing(f"{_FINGERPRINT}-{uuid.uuid4().hex}", KpiPosition(tables={}, today={}))
        return msgspec.structs.replace(_Step(self, sql, anew, changes).run(), rebuilt=True)

    @property
    def known(self) -> KnownPlayers:
        """The index of players who have numbers."""
        return self._known

    def positions(self) -> Mapping[str, TablePosition]:
        """Return the versions of gold's tables, by path, that the KPIs match; empty if they must be rebuilt."""
        for table in self.tables.values():
            table.open()
        standing = self._standing()
        return standing.position.tables if standing is not None else {}

    def _standing(self) -> "_Standing | None":
        notes = {name: table.notes() for name, table in self.tables.items()}
        generations = {str(each.get(GENERATION_NOTE, "")) for each in notes.values()}
        generation = generations.pop()
        if generations or not generation.startswith(_FINGERPRINT):
            return None
        position = msgspec.json.decode(notes[kpi.PLAYER_SETS.name][SOURCE_NOTE], type=KpiPosition)
        if self._has_days_of(self.zones.changed_titles(position.zones)):
            return None
        begun = [msgspec.json.decode(each[_STEP_NOTE], type=_Begun) for each in notes.values() if _STEP_NOTE in each]
        unfinished = frozenset(pair for each in begun if each.step > position.step for pair in each.days)
        return _Standing(generation, position, unfinished)

    def _has_days_of(self, games: Set[str]) -> bool:
        """Return True if the tables have days of one of the games."""
        if not games:
            return False
        self.sets.open()
        return any(game in games for _, game in self.sets.pairs())


@dataclass(frozen=True, slots=True)
class _Standing:
    """The state of the tables at the beginning of a refresh.

    Attributes:
        generation: the id of the players' numbers, the same in all tables.
        position: the position in the newest commit of the sets.
        unfinished: days of games whose rows a refresh may have committed before it ended without committing the sets.
    """

    generation: str
    position: KpiPosition
    unfinished: frozenset[Pair] = frozenset()


@dataclass(slots=True)
class _Step:
    """One attempt at a refresh.

    Attributes:
        job: the refresh.
        sql: the engine that computes rows.
        standing: the state of the tables.
        changes: the changes of gold's tables since then, by path.
        failed: days of games whose KPIs could not be computed.
        made: for each game that was computed, its sets and what else changes.
    """

    job: KpiRefresh
    sql: Engine
    standing: _Standing
    changes: Mapping[str, SourceChanges]
    failed: set[Pair] = field(default_factory=set)
    made: list[tuple[GameSets, GameChange]] = field(default_factory=list)

    @property
    def _position(self) -> KpiPosition:
        return self.standing.position

    @property
    def _is_rebuild(self) -> bool:
        return not self._position.step

    @property
    def _players(self) -> TableFilesOf:
        return self.job.tables[kpi.PLAYERS.name]

    def run(self) -> KpisRefreshed:
        """Compute and commit everything that has changed.

        Raises:
            CommitConflictError: another writer has committed meanwhile.
            FileNotFoundError: a file of gold is deleted already.
        """
        today, new_players = self._today(), NewPlayers(self._players)
        self.job.sets.open()
        # A player who was erased and plays again has lost the number, but the sets may still have it.
        erased = not self._is_rebuild and self._players.erased_since(self._position.players)
        pairs = self.job.sources.changed(self.sql, self.changes, each_commit=erased)
        pairs |= {*self._position.failed, *self.standing.unfinished}
        by_game, begun = _by_game(pairs), self._begun(today)
        if pairs:
            self.job.known.follow(self._players, self.sql)
        for game in sorted(by_game.keys() | begun.keys()):
            of_game = today[self.job.zones.zone(game).name]
            self._compute(game, by_game.get(game, set()), begun.get(game, set()), new_players, of_game)
        self._commit(new_players, pairs, today)
        failed = tuple(sorted({game for _, game in self.failed}))
        return KpisRefreshed(positions=self._positions, days=len(pairs), failed=failed)

    @property
    def _positions(self) -> dict[str, TablePosition]:
        return {path: each.position for path, each in self.changes.items() if each.position is not None}

    def _today(self) -> dict[str, date]:
        """Return the day in each zone; a clock that is corrected to an earlier day takes no day away."""
        now, last = self.job.now(), self._position.today
        return {zone.name: max(zone.day(now), last.get(zone.name, date.min)) for zone in self.job.zones.all}

    def _begun(self, today: Mapping[str, date]) -> dict[str, set[date]]:
        """Return the days of cohorts, by game, that have begun since the last refresh."""
        last, zones = self._position.today, self.job.zones
        pairs = self.job.sets.pairs() if last != today else ()
        cohorts = ((zones.zone(game).name, cohort, game) for cohort, game in pairs)
        return _by_game(
            (day, game)
            for zone, cohort, game in cohorts
            for day in days_of(cohort, today[zone], last.get(zone, date.min))
        )

    def _compute(self, game: str, days: set[date], begun: set[date], new_players: NewPlayers, today: date) -> None:
        """Compute a game's KPIs. If one game fails, the others are still computed."""
        job, sets = self.job, GameSets(game, self.job.sets)
        sets.begin_with({day for day, title in self.standing.unfinished if title == game})
        zone, sources = job.zones.zone(game), job.sources
        figures = GameKpis(
            game, zone, sets, job.tables, sources, self.changes, job.known, new_players, self.sql, job.progress
        )
        try:
            self.made.append((sets, figures.compute(sorted(days), begun, today)))
        except (GamelakeError, BaseError, OSError):
            raise
        except Exception as error:
            self.failed |= {(day, game) for day in days | begun}
            sets.sets.table.discard(sets.written.values())
            log.exception("kpi_game_failed", game=game, days=len(days), error=f"{type(error).__name__}: {error}")

    def _commit(self, new_players: NewPlayers, pairs: set[Pair], today: dict[str, date]) -> None:
        """Commit the computed rows, the sets last."""
        step = _Begun(self._position.step + 1, () if self._is_rebuild else tuple(sorted(pairs)))
        notes = {GENERATION_NOTE: self.standing.generation, _STEP_NOTE: msgspec.json.encode(step).decode()}
        players = new_players.commit(notes, is_first=self._is_rebuild)
        self.job.failpoints.reach(Failpoint.AFTER_TABLE_COMMIT)
        for table in (kpi.DAILY, kpi.ACTIVE_PLAYERS):
            changed = [each for _, change in self.made for each in change.rows if each.table == table and each.days]
            if changed or self._is_rebuild:
                empty = table.schema.empty_table()
                touched = pa.concat_tables([empty.select(table.keys), *(each.touched for each in changed)])
                rows = pa.concat_tables([empty, *(each.rows for each in changed)])
                self.job.tables[table.name].replace_rows(touched, rows, notes)
                self.job.failpoints.reach(Failpoint.AFTER_TABLE_COMMIT)
        self._commit_cohorts(notes)
        self._commit_sets(players, today)

    def _commit_cohorts(self, notes: Mapping[str, str]) -> None:
        for table in (kpi.COHORTS.name, kpi.COHORTS_BY.name):
            written = [file for _, change in self.made for file in change.cohorts[table].written]
            removed = [file for _, change in self.made for file in change.cohorts[table].removed]
            if written or removed or self._is_rebuild:
                self.job.tables[table].commit(written, removed, notes)
                self.job.failpoints.reach(Failpoint.AFTER_TABLE_COMMIT)

    def _commit_sets(self, players: int, today: dict[str, date]) -> None:
        position = KpiPosition(
            tables=self._positions,
            # After a failure, the day stays the old one, so that the next refresh computes the failed game's cohorts.
            today=self._position.today if self.failed else today,
            step=self._position.step,
            players=players,
            failed=tuple(sorted(self.failed)),
            zones=self.job.zones.rules,
        )
        files = [file for sets, _ in self.made for file in sets.written.values()]
        removed = [file for sets, _ in self.made for file in sets.removed]
        if position != self._position or self.standing.unfinished:
            position = msgspec.structs.replace(position, step=position.step + 1)
            notes = {GENERATION_NOTE: self.standing.generation, SOURCE_NOTE: msgspec.json.encode(position).decode()}
            self.job.tables[kpi.PLAYER_SETS.name].commit(files, removed, notes)


def _by_game(pairs: Iterable[Pair]) -> dict[str, set[date]]:
    found: defaultdict[str, set[date]] = defaultdict(set)
    for day, game in pairs:
        found[game].add(day)
    return found
