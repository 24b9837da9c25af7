"""Evaluates the segments of changed players, and compares the members with the committed sets."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from gamelake.delta.data_files import DataFile
from gamelake.delta.log.codec import FileEntry
from gamelake.quality.predicate import parse
from gamelake.scans.sql_engine import Engine
from gamelake.serving.kpis.numbers import Numbers
from gamelake.serving.kpis.sets import as_numbers, as_set
from gamelake.serving.kpis.table_files import GENERATION_NOTE, TableFilesOf
from gamelake.serving.players.contract import SegmentSpec
from gamelake.serving.players.members import Members, moved, read_members, with_changes
from gamelake.serving.players.player_states import Pending, PlayerStates
from gamelake.serving.players.state import merged
from gamelake.serving.players.tables import SEGMENTS


@dataclass(slots=True)
class CommittedSets:
    """The committed members of all segments, cached in memory.

    Attributes:
        table: the table of segments.
    """

    table: TableFilesOf
    _read: dict[str, tuple[str, Members]] = field(default_factory=dict)

    def members(self, file: FileEntry) -> Members:
        """Return the members of a game's segments from a committed file; read each file once."""
        game = file.partition["game_name"] or ""
        path, members = self._read.get(game, ("", {}))
        if path != file.path:
            members = read_members(self.table.rows_of(file))
            self.remember(game, file.path, members)
        return members

    def remember(self, game: str, path: str, members: Members) -> None:
        """Keep the members of a game's segments in memory, as the content of a file."""
        self._read[game] = path, members

    def commit(self, files: Sequence[DataFile], removed: Sequence[FileEntry], generation: str) -> None:
        """Commit files of the table, with the id of the players' numbers; see `TableFilesOf.commit`."""
        self.table.commit(files, removed, {GENERATION_NOTE: generation})


@dataclass(frozen=True, slots=True)
class Move:
    """The players of a game to publish.

    Attributes:
        players: the players.
        present: the new members of the game's segments.
        pending: the game's pending players, with the names of some of them.
    """

    players: BitMap
    present: Members
    pending: Pending


@dataclass(slots=True)
class SegmentEvaluation:
    """One attempt to evaluate the segments of players, and to replace the committed sets.

    Attributes:
        committed: the committed sets.
        states: the states of all players.
        segments_of: returns the segments of a game, by its title.
        kept: the names of invalid segments, which keep their former members.
        sql: the engine.
        is_comparable: True if the committed sets use the players' current numbers.
        failed: the error of each segment that could not be evaluated, by name.
        incomplete: the games in which a segment could not be evaluated.
        evaluated: the number of players who were evaluated.
        moved: the number of players who entered or left a segment.
        moves: the players to publish, by game.
    """

    committed: CommittedSets
    states: PlayerStates
    segments_of: Callable[[str], Sequence[SegmentSpec]]
    kept: Collection[str]
    sql: Engine
    is_comparable: bool
    failed: dict[str, str] = field(default_factory=dict)
    incomplete: set[str] = field(default_factory=set)
    evaluated: int = 0
    moved: int = 0
    moves: dict[str, Move] = field(default_factory=dict)
    _written: dict[str, tuple[DataFile, Members]] = field(default_factory=dict)
    _removed: list[FileEntry] = field(default_factory=list)
    _files: dict[str, FileEntry] = field(init=False)

    def __post_init__(self) -> None:
        """List the committed files. Remove sets with outdated numbers if the game's players have no new numbers."""
        self._files = {file.partition["game_name"] or "": file for file in self.committed.table.files}
        if not self.is_comparable:
            self._removed = [file for game, file in self._files.items() if game in self.states.broken]

    @property
    def games(self) -> set[str]:
        """The games that have committed sets."""
        return set(self._files)

    def take(self, game: str, pending: Pending, unsettled: BitMap) -> None:
        """Evaluate the segments of a game's pending players, and compare the members with the committed sets.

        Args:
            game: the game's title.
            pending: the players to evaluate.
            unsettled: players whose segments may have been published without a commit.
        """
        former = self.committed.members(self._files[game]) if game in self._files and self.is_comparable else {}
        segments = self.segments_of(game)
        is_whole = pending.numbers is None or not self.is_comparable or any(s.name not in former for s in segments)
        numbers = self._everyone(game, former) if is_whole or pending.numbers is None else pending.numbers
        if not is_whole and not len(numbers) and not unsettled:
            return
        present = self._members(game, segments, former, numbers)
        movers = moved(former, present)
        published = movers | unsettled
        if self._is_topic_unknown(game, present):
            published |= as_set(numbers)
        if published:
            self.moves[game] = Move(published, present, pending)
        self.evaluated += len(numbers)
        self.moved += len(movers)
        if movers or present.keys() != former.keys() or not self.is_comparable:
            self._removed += [self._files[game]] if game in self._files else []
            if present:
                self._written[game] = self.committed.table.write(_rows(present), {"game_name": game}), present

    def commit(self) -> None:
        """Commit the sets of the games that have changed.

        Raises:
            CommitConflictError: another writer has committed since the table was opened.
        """
        # Even without files, a commit stores the id of the current numbers, so that the next refresh can compare.
        if not self._written and not self._removed and self.is_comparable:
            return
        files = [file for file, _ in self._written.values()]
        removed = list({file.path: file for file in self._removed}.values())
        self.committed.commit(files, removed, self.states.generation)
        for game, (file, members) in self._written.items():
            self.committed.remember(game, file.path, members)

    def _is_topic_unknown(self, game: str, present: Members) -> bool:
        """Return True if players of a game may have segments in the topic that no committed set has."""
        was_removed = self.committed.table.version >= 0 and game not in self._files
        return not self.is_comparable or (was_removed and bool(present))

    def _everyone(self, game: str, former: Members) -> Numbers:
        """Return the numbers of all current players and all former members."""
        return merged([self.states.of_game[game].numbers, *map(as_numbers, former.values())])

    def _members(
        self, game: str, segments: Sequence[SegmentSpec], former: Members, numbers: Numbers
    ) -> dict[str, BitMap]:
        """Return the members of all segments of a game after some of its players were evaluated."""
        self.sql.give("player", self.states.of_game[game].players(numbers))
        present = {name: former[name] for name in self.kept if name in former}
        for segment in segments:
            before = former.get(segment.name)
            try:
                condition = parse(segment.where).text
                found = self.sql.table(f"SELECT number FROM player WHERE {condition}")  # noqa: S608 # a checked condition
            except Exception as error:  # a value that one condition can't handle must not stop the other segments
                self.failed[segment.name] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
                self.incomplete.add(game)
                present |= {} if before is None else {segment.name: before}
                continue
            matching = found.column("number").to_numpy().astype(np.uint32)
            present[segment.name] = with_changes(before or BitMap(), numbers, matching)
        return present


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
