"""Brings the segments up to date with gold's player days.

The state of each player is kept in memory. A refresh reads the rows of player days that have changed, evaluates the
segments of the changed players, publishes who entered or left one, and commits the sets last. So if a refresh ends
early, the next one finds the same differences to the committed sets, and publishes them again.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from gamelake.contract.games import GamesContract
from gamelake.delta.appends import schema_of
from gamelake.delta.commits import commit_with_retry
from gamelake.delta.tables import open_table
from gamelake.model.errors import StoreError
from gamelake.model.failpoints import Failpoint, Failpoints
from gamelake.objects.store import Store
from gamelake.scans.datasets import dataset
from gamelake.scans.sql_engine import Engine, engine
from gamelake.serving.kpis.numbers import Numbers
from gamelake.serving.kpis.refresh import KpiRefresh
from gamelake.serving.kpis.sets import as_numbers
from gamelake.serving.kpis.table_files import GENERATION_NOTE, TableFilesOf
from gamelake.serving.kpis.tables import PLAYERS
from gamelake.serving.players.contract import SegmentSpec
from gamelake.serving.players.evaluation import CommittedSets, Move, SegmentEvaluation
from gamelake.serving.players.members import segments_of
from gamelake.serving.players.moves import MovesPublisher, NoPublisher, UnsettledMoves
from gamelake.serving.players.player_states import Pending, PlayerStates
from gamelake.serving.players.state import merged
from gamelake.serving.players.tables import SEGMENTS

_ATTEMPTS = 10
_NAMES = pa.schema([("number", pa.uint32()), ("gamer_id", pa.string())])


class SegmentsRefreshed(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a refresh.

    Attributes:
        players: the number of players whose segments were evaluated.
        moved: the number of players who entered or left a segment.
        failed: the error of each segment and game that could not be computed, by name.
        seconds: the duration of the refresh.
    """

    players: int = 0
    moved: int = 0
    failed: dict[str, str] = {}
    seconds: float = 0.0


@dataclass(slots=True)
class SegmentRefresh:
    """Refreshes the segments of one lakehouse. Reuse the instance: it keeps the players in memory.

    Attributes:
        store: the lakehouse.
        games: the games contract.
        kpis: the refresh of KPIs, which numbers the players; it must run before this one.
        publisher: publishes who entered or left a segment.
        failpoints: where a test ends the process.
        progress: is called after each game.
        segments: the segments to compute.
        kept: the names of invalid segments, which keep their former members.
        states: the states of all players.
        committed: the committed members.
    """

    store: Store
    games: GamesContract
    kpis: KpiRefresh
    publisher: MovesPublisher = field(default_factory=NoPublisher)
    failpoints: Failpoints = field(default_factory=Failpoints)
    progress: Callable[[], None] = lambda: None
    segments: Sequence[SegmentSpec] = ()
    kept: Collection[str] = ()
    states: PlayerStates = field(init=False)
    committed: CommittedSets = field(init=False)
    _players: TableFilesOf = field(init=False)
    _unsettled: UnsettledMoves = field(init=False)

    def __post_init__(self) -> None:
        """Open nothing yet."""
        self.states = PlayerStates(self.store, self.kpis, self.progress)
        self.committed = CommittedSets(TableFilesOf(self.store, SEGMENTS))
        self._players = TableFilesOf(self.store, PLAYERS)
        self._unsettled = UnsettledMoves(self.store)

    def use(self, segments: Sequence[SegmentSpec], kept: Collection[str]) -> None:
        """Replace the segments; the next refresh evaluates all players."""
        self.segments, self.kept = segments, kept
        self.states.evaluate_all()

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
            self.states.follow(self._players, generation, sql)
            done = commit_with_retry(SEGMENTS.path, _ATTEMPTS, lambda: self._evaluate(sql), failure)
        return msgspec.structs.replace(done, seconds=time.perf_counter() - started)

    def _evaluate(self, sql: Engine) -> SegmentsRefreshed:
        """Evaluate the segments of the pending players, publish the differences, and commit."""
        states, table = self.states, self.committed.table
        table.open()
        is_comparable = table.version < 0 or table.notes().get(GENERATION_NOTE) == states.generation
        made = SegmentEvaluation(self.committed, states, self._segments_of, self.kept, sql, is_comparable)
        unsettled = self._unsettled.recall(states.generation, table.version)
        self.publisher.follow_erasures()
        states.include(made.games | unsettled.keys())
        for game in sorted(states.of_game.keys() - states.broken):
            made.take(game, states.pending.get(game, Pending()), unsettled.get(game, BitMap()))
            self.progress()
        if made.moves:
            movers = {game: move.players for game, move in made.moves.items()}
            self._unsettled.intend(movers, states.generation, table.version)
            self._publish(made.moves)
        self.failpoints.reach(Failpoint.AFTER_FILES)
        made.commit()
        self._unsettled.settle({game: players for game, players in unsettled.items() if game in states.broken})
        states.settle(made.incomplete)
        failed = {**dict.fromkeys(sorted(states.broken), "its KPIs have failed"), **made.failed}
        return SegmentsRefreshed(players=made.evaluated, moved=made.moved, failed=failed)

    def _segments_of(self, title: str) -> list[SegmentSpec]:
        """Return the segments of a game; an unlisted title has only the segments without a game."""
        name = self.games.name_of(title)
        return [each for each in self.segments if each.game in {None, name}]

    def _publish(self, moves: Mapping[str, Move]) -> None:
        """Publish the segments of all players who moved, and tombstones of those who are gone.

        Raises:
            KafkaUnavailableError: Kafka did not acknowledge all of them.
        """
        for game, move in moves.items():
            numbers = as_numbers(move.players)
            gamer_ids = self._gamer_ids(game, numbers, move.pending)
            is_named = ~gamer_ids.is_null().to_numpy(zero_copy_only=False)
            is_playing = np.isin(numbers, self.states.of_game[game].numbers, assume_unique=True)
            self.publisher.forget(game, gamer_ids.filter(pa.array(is_named & ~is_playing)))
            shown = is_named & is_playing
            segments = segments_of(numbers[shown], move.present)
            self.publisher.publish(game, gamer_ids.filter(pa.array(shown)), segments)

    def _gamer_ids(self, game: str, numbers: Numbers, pending: Pending) -> pa.Array:
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
