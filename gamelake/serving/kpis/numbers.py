"""Players' numbers: each player of a game gets the next one when first seen, and keeps it.

The index of all players stays in memory from refresh to refresh: 16 bytes per player, with a hash of 63 bits. With
10,000,000 players, the probability that two of them share a hash is 1 in 180,000. Each file of the table is read once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gamelake.delta.data_files import DataFile
from gamelake.delta.log.codec import FileEntry
from gamelake.model.arrays import Flags, Ints
from gamelake.scans.sql_engine import Engine
from gamelake.serving.gold.runs import ROWS_PER_RUN
from gamelake.serving.kpis.table_files import TableFilesOf
from gamelake.serving.kpis.tables import PLAYERS

Numbers = npt.NDArray[np.uint32]
# The key of a player, in SQL. The same version of DuckDB always computes the same key.
PLAYER_KEY = "CAST(hash(game_name, gamer_id) >> 1 AS BIGINT)"
# A smaller file is rewritten together with the next players, so that refreshes leave no small files.
_SMALL_BYTES = 2 * 2**20
# The file id of players who are in no file yet.
_UNWRITTEN = 0
# The index is in parts by the highest bits of the keys, which have 63: a merge then copies one part at a time.
_PARTS = 16
_PART_STARTS = np.arange(1, _PARTS, dtype=np.int64) * (2**63 // _PARTS)


@dataclass(slots=True)
class _Segment:
    """Some players, as three parallel arrays.

    Attributes:
        keys: int64, ascending.
        numbers: uint32, the players' numbers.
        files: uint32, the ids of the files that they were read from.
    """

    keys: Ints
    numbers: Numbers
    files: Numbers

    @classmethod
    def of(cls, keys: Ints, numbers: Numbers, file: int) -> "_Segment":
        order = np.argsort(keys, kind="stable")
        return cls(keys[order], numbers[order], np.full(len(keys), file, np.uint32))

    def parts(self) -> "list[_Segment]":
        """Copy the players into one segment for each part of the index."""
        return [
            _Segment(self.keys[here].copy(), self.numbers[here].copy(), self.files[here].copy())
            for here in _parts_of(self.keys)
        ]

    def take(self, other: "_Segment") -> None:
        """Add the players of another segment; one array after the other is copied, to need less memory."""
        places = np.searchsorted(self.keys, other.keys)
        self.keys = np.insert(self.keys, places, other.keys)
        self.numbers = np.insert(self.numbers, places, other.numbers)
        self.files = np.insert(self.files, places, other.files)

    def without(self, files: Sequence[int]) -> "_Segment":
        gone = np.isin(self.files, files)
        return _Segment(self.keys[~gone], self.numbers[~gone], self.files[~gone]) if gone.any() else self


def _parts_of(keys: Ints) -> list[slice]:
    """Return the places of each part of the index in ascending keys."""
    cuts = [0, *np.searchsorted(keys, _PART_STARTS).tolist(), len(keys)]
    return [slice(*ends) for ends in pairwise(cuts)]


def _merge(part: list[_Segment], segment: _Segment) -> None:
    """Add a segment, and merge segments until each is more than twice as long as the next, so that few remain."""
    while part and len(part[-1].keys) <= 2 * len(segment.keys):
        longer = part.pop()
        longer.take(segment)
        segment = longer
    part.append(segment)


@dataclass(slots=True)
class KnownPlayers:
    """The index of players: those in the table of players at the last `follow`, and those added since.

    One thread uses it at a time. Call `follow` at the beginning of each refresh.
    """

    _parts: list[list[_Segment]] = field(default_factory=lambda: [[] for _ in range(_PARTS)])
    _ids: dict[str, int] = field(default_factory=dict)
    _last_id: int = _UNWRITTEN
    _next: dict[str, int] = field(default_factory=dict)

    def follow(self, table: TableFilesOf, sql: Engine) -> None:
        """Read the table's new files, and forget removed files and the players who are in no file.

        Args:
            table: the table of players, opened.
            sql: the engine that computes the players' keys.
        """
        files = {file.path: file for file in table.files}
        gone = [_UNWRITTEN, *(number for path, number in self._ids.items() if path not in files)]
        for part in self._parts:
            part[:] = [kept for each in part if len((kept := each.without(gone)).keys)]
        self._ids = {path: number for path, number in self._ids.items() if path in files}
        for path in files.keys() - self._ids.keys():
            self._read(path, table.rows_of(files[path]), sql)

    def _read(self, path: str, rows: pa.Table, sql: Engine) -> None:
        self._last_id += 1
        self._ids[path] = self._last_id
        sql.give("numbered", rows)
        found = sql.table(f"SELECT {PLAYER_KEY} AS key, number FROM numbered")  # noqa: S608 # a constant
        numbers = found.column("number").to_numpy().astype(np.uint32)
        self._add(_Segment.of(found.column("key").to_numpy(), numbers, self._last_id))
        last = sql.table("SELECT game_name, max(number) AS last FROM numbered GROUP BY ALL")
        for row in last.to_pylist():
            self._next[row["game_name"]] = max(self._next.get(row["game_name"], 0), row["last"] + 1)

    def _add(self, segment: _Segment) -> None:
        for part, added in zip(self._parts, segment.parts(), strict=True):
            if len(added.keys):
                _merge(part, added)

    def find(self, keys: Ints) -> tuple[Numbers, Flags]:
        """Look up the numbers of players.

        Args:
            keys: int64 of shape (n,), the players' keys in any order.

        Returns:
            Two arrays of shape (n,), parallel to `keys`: the numbers (uint32, 0 if unknown), and True (bool) for each
            known player.
        """
        order = np.argsort(keys)
        wanted, numbers, known = keys[order], np.zeros(len(keys), np.uint32), np.zeros(len(keys), np.bool_)
        for part, here in zip(self._parts, _parts_of(wanted), strict=True):
            for each in part:
                places = np.minimum(np.searchsorted(each.keys, wanted[here]), len(each.keys) - 1)
                found = each.keys[places] == wanted[here]
                numbers[order[here][found]] = each.numbers[places[found]]
                known[order[here][found]] = True
        return numbers, known

    def number(self, game: str, keys: Ints) -> Numbers:
        """Assign the next numbers of a game to new players.

        Args:
            game: the game's title.
            keys: int64 of shape (n,), the players' keys, each once and none of them known.

        Returns:
            uint32 of shape (n,): the players' numbers, in the order of `keys`.
        """
        first = self._next.get(game, 0)
        numbers = np.arange(first, first + len(keys), dtype=np.uint32)
        self._next[game] = first + len(keys)
        self._add(_Segment.of(keys, numbers, _UNWRITTEN))
        return numbers


@dataclass(slots=True)
class NewPlayers:
    """The players who were numbered in this refresh; once there are enough of them, they are written to a file.

    Attributes:
        table: the table of players.
        files: the files that were written; no commit names them yet.
    """

    table: TableFilesOf
    files: list[DataFile] = field(default_factory=list)
    _rows: list[pa.Table] = field(default_factory=list)

    def add(self, game: str, gamers: pa.ChunkedArray, numbers: Numbers) -> None:
        """Add players of a game.

        Args:
            game: the game's title.
            gamers: string, the players' pseudonyms.
            numbers: uint32, the players' numbers in the same order.
        """
        columns = {"game_name": pa.repeat(pa.scalar(game), len(gamers)), "gamer_id": gamers, "number": numbers}
        self._rows.append(pa.table(columns).cast(PLAYERS.schema))
        if sum(map(len, self._rows)) >= ROWS_PER_RUN:
            self._write()

    def commit(self, notes: Mapping[str, str], *, is_first: bool) -> int:
        """Commit the players, and merge the table's smallest file into theirs if it is small.

        Args:
            notes: the notes of the commit.
            is_first: True to commit even without new players.

        Returns:
            The table's version afterwards.

        Raises:
            CommitConflictError: another writer, such as an erasure, has committed; numbers may be wrong now.
        """
        if not (self._rows or self.files or is_first):
            return self.table.version
        removed: list[FileEntry] = []
        smallest = min(self.table.files, key=lambda file: file.size, default=None)
        if self._rows and smallest is not None and smallest.size < _SMALL_BYTES:
            self._rows.insert(0, self.table.rows_of(smallest).cast(PLAYERS.schema))
            removed.append(smallest)
        if self._rows:
            self._write()
        return self.table.commit(self.files, removed, notes)

    def _write(self) -> None:
        self.files.append(self.table.write(pa.concat_tables(self._rows), {}))
        self._rows.clear()
