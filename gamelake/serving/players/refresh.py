"""Brings the segments up to date with gold's player days: adds the changes of players, and evaluates conditions.

The state of each player is kept in memory. A refresh reads the rows of player days that have changed, evaluates the
segments of the changed players, publishes who entered or left one, and commits the sets last. So if a refresh ends
early, the next one finds the same differences to the committed sets, and publishes them again.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Protocol

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from gamelake.contract.games import GamesContract
from gamelake.delta.appends import schema_of
from gamelake.delta.commits import commit_with_retry
from gamelake.delta.data_files import DataFile
from gamelake.delta.log.codec import FileEntry
from gamelake.delta.tables import open_table
from gamelake.model.arrays import Ints
from gamelake.model.errors import StoreError
from gamelake.model.failpoints import Failpoint, Failpoints
from gamelake.model.logs import event_logger
from gamelake.objects.store import Store
from gamelake.quality.predicate import parse
from gamelake.scans.datasets import dataset
from gamelake.scans.sql_engine import Engine, engine
from gamelake.serving.kpis.numbers import PLAYER_KEY, KnownPlayers, Numbers
from gamelake.serving.kpis.refresh import KpiRefresh
from gamelake.serving.kpis.sets import as_numbers, as_set
from gamelake.serving.kpis.table_files import GENERATION_NOTE, TableFilesOf
from gamelake.serving.kpis.tables import PLAYERS
from gamelake.serving.players.contract import SegmentSpec
from gamelake.serving.players.members import Members, moved, read_members, segments_of, with_changes
from gamelake.serving.players.player_days import PlayerDays, names_of
from gamelake.serving.players.state import GameState, as_days, merged, of_each_game
from gamelake.serving.players.statements import CHANGES, RECENT_SUMS, WINDOWS
from gamelake.serving.players.tables import MONTH, SEGMENTS

log = event_logger(__name__)

_ATTEMPTS = 10
_EPOCH = date(1970, 1, 1)
# More files are not compared: everything is computed again, which takes less memory.
_MOST_COMPARED_BYTES = 32 * 2**20
_INTENT = "_gamelake/segments/intent"
_GAMES = "SELECT DISTINCT game_name FROM (SELECT game_name FROM came UNION ALL SELECT game_name FROM went)"


class SegmentsRefreshed(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a refresh.

    Attributes:
        players: the number of players whose segments were evaluated.
        moved: the number of players who entered or left a segment.
        failed: the segments and games that could not be computed, and why.
        seconds: the duration of the refresh.
    """

    players: int = 0
    moved: int = 0
    failed: dict[str, str] = {}
    seconds: float = 0.0


class MovesPublisher(Protocol):
    """Publishes the present segments of players."""

    def publish(self, title: str, gamer_ids: pa.Array, segments: pa.Array) -> None:
        """Publish the segments (list<string>) of players (string, pseudonyms); return once Kafka has them."""

    def forget(self, title: str, gamer_ids: pa.Array) -> None:
        """Publish tombstones of players (string, pseudonyms) who have no events any longer."""

    def follow_erasures(self) -> None:
        """Publish tombstones of the players who were erased since the last call."""


class NoPublisher:
    """Publishes nothing, where there is no Kafka."""

    def publish(self, title: str, gamer_ids: pa.Array, segments: pa.Array) -> None:
        """Accept string and list<string>, and do nothing."""

    def forget(self, title: str, gamer_ids: pa.Array) -> None:
        """Accept string, and do nothing."""

    def follow_erasures(self) -> None:
        """Do nothing."""


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """The players whose segments a refresh is about to publish, stored before that.

    After a crash between publication and commit, the next refresh publishes the same players again, also those who are
    back in the committed segments.

    Attributes:
        generation: the id of the players' numbers.
        version: the version of the table of segments that the refresh is going to commit.
        movers: the players of each game, as a serialized set of numbers.
    """

    generation: str
    version: int
    movers: dict[str, bytes]


@dataclass(slots=True)
class _Pending:
    """The players of a game who must be evaluated at the next success.

    Attributes:
        numbers: the players; None for all of the game.
        names: pieces of (number, gamer_id) that were read anyway.
    """

    numbers: Numbers | None = field(default_factory=lambda: np.zeros(0, np.uint32))
    names: list[pa.Table] = field(default_factory=list)

    def add(self, numbers: Numbers) -> None:
        """Add players."""
        if self.numbers is not None:
            self.numbers = merged([self.numbers, numbers])


@dataclass(slots=True)
class SegmentRefresh:
    """Refreshes the segments of one lakehouse. Reuse one instance, since it keeps the players in memory.

    Attributes:
        store: the lakehouse.
        games: the games contract.
        kpis: the refresh of KPIs, whose players' numbers segments have; it must run before this one.
        publisher: publishes who entered or left a segment.
        failpoints: where a test ends the process.
        progress: is called after each game.
        segments: the segments to compute.
        kept: the names of wrong segments, whose former members stay.
        rebuild_seconds: the shortest time between two attempts to compute games whose players had no numbers.
    """

    store: Store
    games: GamesContract
    kpis: KpiRefresh
    publisher: MovesPublisher = field(default_factory=NoPublisher)
    failpoints: Failpoints = field(default_factory=Failpoints)
    progress: Callable[[], None] = lambda: None
    segments: Sequence[SegmentSpec] = ()
    kept: Collection[str] = ()
    rebuild_seconds: float = 60.0
    table: TableFilesOf = field(init=False)
    _players: TableFilesOf = field(init=False)
    _days: PlayerDays = field(init=False)
    _states: dict[str, GameState] = field(default_factory=dict)
    _pending: dict[str, _Pending] = field(default_factory=dict)
    _generation: str = ""
    _known: KnownPlayers | None = None
    _broken: set[str] = field(default_factory=set)
    _next_rebuild: float = 0.0
    _read: dict[str, tuple[str, Members]] = field(default_factory=dict)
    _unsettled: dict[str, BitMap] | None = None

    def __post_init__(self) -> None:
        """Open nothing yet."""
        self.table = TableFilesOf(self.store, SEGMENTS)
        self._players = TableFilesOf(self.store, PLAYERS)
        self._days = PlayerDays(self.store)

    def use(self, segments: Sequence[SegmentSpec], kept: Collection[str]) -> None:
        """Compute other segments from now on; all players are evaluated again."""
        self.segments, self.kept = segments, kept
        for game in self._states:
            self._pending[game] = _Pending(numbers=None)

    def __call__(self) -> SegmentsRefreshed:
        """Refresh the segments.

        Raises:
            KafkaUnavailableError: Kafka did not acknowledge all changes; the next refresh publishes them again.
            StoreError: another writer committed first at every attempt.
        """
        started = time.perf_counter()
        failure = StoreError("gold/segments has another writer too: stop it; only the gold job may write here")
        with engine(threads=2) as sql:
            self._players.open()
            generation = str(self._players.notes().get(GENERATION_NOTE, ""))
            if not generation:
                return SegmentsRefreshed()
            self._follow(sql, generation)
            done = commit_with_retry(SEGMENTS.path, _ATTEMPTS, lambda: self._evaluate(sql), failure)
        return msgspec.structs.replace(done, seconds=time.perf_counter() - started)

    def _follow(self, sql: Engine, generation: str) -> None:
        """Bring the states of all players up to date."""
        known = self.kpis.known
        if known is not self._known or generation != self._generation:
            self._forget()
        self._known, self._generation = known, generation
        known.follow(self._players, sql)
        try:
            self._take_changes(sql)
            self._begin_days(sql)
        except BaseException:
            # The states may have a part of the changes.
            self._forget()
            raise

    def _forget(self) -> None:
        self._states.clear()
        self._pending.clear()
        self._broken.clear()
        self._unsettled = None
        self._days = PlayerDays(self.store)

    def _take_changes(self, sql: Engine) -> None:
        changes = self._days.advance()
        if changes is None or (changes.went and changes.bytes > _MOST_COMPARED_BYTES):
            self._forget()
            changes = self._days.begin()
        for part in changes.parts():
            self._days.give(sql, "came", part.came)
            self._days.give(sql, "went", part.went)
            self._apply(sql, names_of(sql.table(_GAMES)), self._broken)
        if self._broken and time.monotonic() >= self._next_rebuild:
            self._next_rebuild = time.monotonic() + self.rebuild_seconds
            broken, self._broken = self._broken, set()
            self._rebuild_games(sql, broken)

    def _rebuild_games(self, sql: Engine, games: set[str]) -> None:
        """Compute games again whose players had no numbers."""
        for game in games:
            self._states.pop(game, None)
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
        assert self._known is not None  # noqa: S101 # `_follow` sets it
        numbers, known = self._known.find(changes.column("key").to_numpy())
        applied = self._states[game].apply(numbers, known, changes)
        pending = self._pending.setdefault(game, _Pending())
        pending.add(applied.numbers)
        if pending.numbers is not None:
            names = pa.table({"number": numbers, "gamer_id": changes.column("gamer_id")})
            pending.names.append(names.filter(pa.array(known)))
        return applied.again

    def _apply_again(self, sql: Engine, game: str, keys: pa.Array) -> None:
        """Compute some players of a game from all their days."""
        state = self._states[game]
        former = state.places_of(keys.to_numpy())
        state.remove(former)
        self._pending[game].add(former)
        self._days.give_players(sql, "came", keys, PLAYER_KEY)
        self._days.give(sql, "went", ())
        self._give_clock(sql, [game])
        for title, changes in of_each_game(sql.table(CHANGES)):
            if title == game and len(self._apply_to(game, changes)):
                # Players without numbers: the KPIs of the game have failed.
                self._broken.add(game)

    def _give_clock(self, sql: Engine, games: Sequence[str]) -> None:
        for game in games:
            if game not in self._states:
                self._states[game] = GameState(game, self._today(game))
                self._pending[game] = _Pending(numbers=None)
        sql.give("clock", as_days({game: self._states[game].today for game in games}))

    def _today(self, game: str) -> int:
        return (self.kpis.zones.zone(game).day(self.kpis.now()) - _EPOCH).days

    def _begin_days(self, sql: Engine) -> None:
        """Compute the windows of games whose day has begun, and evaluate all their players."""
        begun = {game: today for game, state in self._states.items() if (today := self._today(game)) > state.today}
        if not begun:
            return
        first = _EPOCH + timedelta(days=min(begun.values()) - MONTH + 1)
        self._days.give_since(sql, "recent", first)
        sql.give("clock", as_days(begun))
        sums = dict(of_each_game(sql.table(RECENT_SUMS)))
        assert self._known is not None  # noqa: S101 # `_follow` sets it
        for game, today in begun.items():
            rows = sums.get(game, _no_sums())
            numbers, known = self._known.find(rows.column("key").to_numpy())
            self._states[game].set_windows(today, numbers[known], rows.filter(pa.array(known)))
            self._pending[game] = _Pending(numbers=None)
            self.progress()

    def _evaluate(self, sql: Engine) -> SegmentsRefreshed:
        """Evaluate the segments of the pending players, publish the differences, and commit."""
        self.table.open()
        step = _Step(self, sql, self.table.version < 0 or self.table.notes().get(GENERATION_NOTE) == self._generation)
        unsettled = self._recall()
        self.publisher.follow_erasures()
        for game in sorted(self._states.keys() - self._broken):
            step.take(game, self._pending.get(game, _Pending()), unsettled.get(game, BitMap()))
            self.progress()
        if step.moves:
            self._intend({game: move.players for game, move in step.moves.items()})
            step.publish()
        self.failpoints.reach(Failpoint.AFTER_FILES)
        step.commit()
        self._unsettled = {game: players for game, players in unsettled.items() if game in self._broken}
        self._pending = {game: _Pending(numbers=None) for game in self._broken | step.incomplete}
        failed = {**dict.fromkeys(sorted(self._broken), "its KPIs have failed"), **step.failed}
        return SegmentsRefreshed(players=step.evaluated, moved=step.moved, failed=failed)

    def _recall(self) -> dict[str, BitMap]:
        """Return the players, by game, whose segments a refresh may have published without a commit."""
        if self._unsettled is None:
            self._unsettled = {}
            content = self.store.get(_INTENT)
            intent = None if content is None else msgspec.msgpack.decode(content, type=Intent)
            if intent is not None and intent.generation == self._generation and intent.version > self.table.version:
                self._unsettled = {game: BitMap.deserialize(players) for game, players in intent.movers.items()}
        return self._unsettled

    def _intend(self, movers: Mapping[str, BitMap]) -> None:
        """Store the players whose segments are going to be published."""
        self._unsettled = {**(self._unsettled or {}), **movers}
        sets = {game: players.serialize() for game, players in self._unsettled.items()}
        intent = Intent(generation=self._generation, version=self.table.version + 1, movers=sets)
        self.store.put(_INTENT, msgspec.msgpack.encode(intent))

    def name_of(self, title: str) -> str | None:
        """Return the name of a title's game in the games contract; None if the contract does not list the title."""
        return next((game.name for game in self.games.games if title in game.match), None)

    def has_players(self, title: str) -> bool:
        """Return True if a game has players, or if its players are not known at present."""
        return title in self._states or title in self._broken

    def members(self, file: FileEntry) -> Members:
        """Return the members of a game's segments from a committed file, which is read once."""
        game = file.partition["game_name"] or ""
        path, members = self._read.get(game, ("", {}))
        if path != file.path:
            members = read_members(self.table.rows_of(file))
            self.remember(game, file.path, members)
        return members

    def remember(self, game: str, path: str, members: Members) -> None:
        """Keep the members of a game's segments, which a file has, in memory."""
        self._read[game] = path, members

    def commit(self, files: Sequence[DataFile], removed: Sequence[FileEntry]) -> None:
        """Commit files of the table of segments; see `TableFilesOf.commit`."""
        self.table.commit(files, removed, {GENERATION_NOTE: self._generation})

    def state(self, title: str) -> GameState:
        """Return the state of a game's players."""
        return self._states[title]

    def gamer_ids(self, game: str, numbers: Numbers, pending: "_Pending") -> pa.Array:
        """Return the pseudonyms of players: string, in the order of `numbers`, null for those who are gone."""
        known = [piece.filter(pc.is_in(piece.column("number"), pa.array(numbers))) for piece in pending.names]
        missing = np.setdiff1d(numbers, merged([each.column("number").to_numpy() for each in known]))
        if len(missing):
            known.append(self._named(game, missing))
        names = pa.concat_tables([each.cast(_NAMES) for each in [_NAMES.empty_table(), *known]])
        places = pc.index_in(pa.array(numbers), names.column("number").combine_chunks())
        return names.column("gamer_id").combine_chunks().take(places)

    def _named(self, game: str, numbers: Numbers) -> pa.Table:
        schema = schema_of(open_table(self.store.location, PLAYERS.path))
        rows = dataset(self.store.location, PLAYERS.path, schema, self._players.files)
        wanted = (pc.field("game_name") == game) & pc.field("number").isin(numbers.astype(np.int64))
        return rows.to_table(columns=["number", "gamer_id"], filter=wanted)


@dataclass(frozen=True, slots=True)
class _Move:
    """Players of a game whose segments must be published.

    Attributes:
        players: the players.
        present: the members of the game's segments.
        pending: the pending players, with names.
    """

    players: BitMap
    present: Members
    pending: _Pending


@dataclass(slots=True)
class _Step:
    """One attempt to evaluate and to commit.

    Attributes:
        job: the refresh.
        sql: the engine.
        is_comparable: True if the committed sets have the players' present numbers.
        failed: the segments that could not be evaluated, and why.
        incomplete: the games with such a segment.
        evaluated: the number of players who were evaluated.
        moved: the number of players who entered or left a segment.
        moves: the players to publish, by game.
    """

    job: SegmentRefresh
    sql: Engine
    is_comparable: bool
    failed: dict[str, str] = field(default_factory=dict)
    incomplete: set[str] = field(default_factory=set)
    evaluated: int = 0
    moved: int = 0
    moves: dict[str, "_Move"] = field(default_factory=dict)
    _written: dict[str, tuple[DataFile, Members]] = field(default_factory=dict)
    _removed: list[FileEntry] = field(default_factory=list)
    _files: dict[str, FileEntry] = field(init=False)

    def __post_init__(self) -> None:
        """List the committed files, and remove those of games without players."""
        self._files = {file.partition["game_name"] or "": file for file in self.job.table.files}
        self._removed = [file for game, file in self._files.items() if not self._is_present(game)]

    def _is_present(self, game: str) -> bool:
        return self.job.has_players(game)

    def take(self, game: str, pending: _Pending, unsettled: BitMap) -> None:
        """Evaluate the segments of a game's pending players, and find the differences to the committed sets.

        Args:
            game: the game's title.
            pending: the players to evaluate.
            unsettled: players whose segments may have been published without a commit.
        """
        former = self.job.members(self._files[game]) if game in self._files and self.is_comparable else {}
        segments = [each for each in self.job.segments if each.game in {None, self.job.name_of(game)}]
        is_whole = pending.numbers is None or not self.is_comparable or any(s.name not in former for s in segments)
        numbers = self._everyone(game, former) if is_whole or pending.numbers is None else pending.numbers
        if not is_whole and not len(numbers) and not unsettled:
            return
        present = self._members(game, segments, former, numbers)
        movers = moved(former, present)
        published = movers | unsettled if self.is_comparable else movers | unsettled | as_set(numbers)
        if published:
            self.moves[game] = _Move(published, present, pending)
        self.evaluated += len(numbers)
        self.moved += len(movers)
        if movers or present.keys() != former.keys() or not self.is_comparable:
            self._removed += [self._files[game]] if game in self._files else []
            if present:
                self._written[game] = self.job.table.write(_rows(present), {"game_name": game}), present

    def commit(self) -> None:
        """Commit the sets of the games that have changed.

        Raises:
            CommitConflictError: another writer has committed since the table was opened.
        """
        if not self._written and not self._removed:
            return
        files = [file for file, _ in self._written.values()]
        removed = list({file.path: file for file in self._removed}.values())
        self.job.commit(files, removed)
        for game, (file, members) in self._written.items():
            self.job.remember(game, file.path, members)

    def _everyone(self, game: str, former: Members) -> Numbers:
        """Return the numbers of all players, and of those who were members."""
        return merged([self.job.state(game).numbers, *map(as_numbers, former.values())])

    def _members(
        self, game: str, segments: Sequence[SegmentSpec], former: Members, numbers: Numbers
    ) -> dict[str, BitMap]:
        """Return the members of all segments of a game after some of its players were evaluated."""
        self.sql.give("player", self.job.state(game).players(numbers))
        present = {name: former[name] for name in self.job.kept if name in former}
        for segment in segments:
            before = former.get(segment.name)
            try:
                condition = parse(segment.where).text
                found = self.sql.table(f"SELECT number FROM player WHERE {condition}")  # noqa: S608 # a checked condition
            except Exception as error:  # a value that a condition can't compute must stop no other segment
                self.failed[segment.name] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
                self.incomplete.add(game)
                present |= {} if before is None else {segment.name: before}
                continue
            matching = found.column("number").to_numpy().astype(np.uint32)
            present[segment.name] = with_changes(before or BitMap(), numbers, matching)
        return present

    def publish(self) -> None:
        """Publish the segments of all players who moved, and tombstones of those who are gone.

        Raises:
            KafkaUnavailableError: Kafka did not acknowledge all of them.
        """
        for game, move in self.moves.items():
            numbers = as_numbers(move.players)
            gamer_ids = self.job.gamer_ids(game, numbers, move.pending)
            is_named = ~gamer_ids.is_null().to_numpy(zero_copy_only=False)
            is_playing = np.isin(numbers, self.job.state(game).numbers, assume_unique=True)
            self.job.publisher.forget(game, gamer_ids.filter(pa.array(is_named & ~is_playing)))
            shown = is_named & is_playing
            segments = segments_of(numbers[shown], move.present)
            self.job.publisher.publish(game, gamer_ids.filter(pa.array(shown)), segments)


def _rows(members: Members) -> pa.Table:
    """Return the members of a game's segments as rows of the table of segments, without the game."""
    names = sorted(members)
    columns = {
        "segment": pa.array(names, pa.string()),
        "players": pa.array([len(members[name]) for name in names], pa.int64()),
        "members": pa.array([members[name].serialize() for name in names], pa.binary()),
        "computed_at": pa.array([datetime.now(UTC)] * len(names), SEGMENTS.schema.field("computed_at").type),
    }
    return pa.table(columns)


_NAMES = pa.schema([("number", pa.uint32()), ("gamer_id", pa.string())])


def _no_sums() -> pa.Table:
    return pa.table({name: pa.array([], pa.int64()) for name in ("key", *WINDOWS)})
