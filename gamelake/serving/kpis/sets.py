"""Each day of a game as sets of players' numbers, and the activity windows computed from them."""

import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from gamelake.delta.data_files import DataFile
from gamelake.delta.log.codec import FileEntry
from gamelake.serving.kpis.numbers import Numbers
from gamelake.serving.kpis.sources import Pair
from gamelake.serving.kpis.table_files import TableFilesOf
from gamelake.serving.kpis.tables import MONEY, MONTH, PLAYER_SETS, WEEK

# The players of a first day by dimension and value.
Split = Mapping[tuple[str, str], BitMap]
# A day with 1,000,000 of 10,000,000 players, 33,000 of them payers, takes 2.2 MB, so that a month of them is kept.
_CACHED_BYTES = 64 * 2**20
_SETS = ("active", "payers", "new", "ever", "new_payers")
# The files of sets that are read at the same time, because most of the time of each is a request to the object store.
_READERS = 8


@dataclass(frozen=True, slots=True)
class Played:
    """The players of one day of a game.

    Attributes:
        active: players of the day.
        payers: players of the day who bought something.
        bookings: what each payer paid, in the order of `payers`; decimal(38, 6).
    """

    active: BitMap
    payers: BitMap
    bookings: pa.Array


@dataclass(frozen=True, slots=True)
class EarlierPlayers:
    """The players before a day.

    Attributes:
        ever: players who were active on an earlier day.
        payers: players who bought something on an earlier day.
        unsettled: players whose first purchase may have moved from an earlier day to a later one, or the reverse.
    """

    ever: BitMap = field(default_factory=BitMap)
    payers: BitMap = field(default_factory=BitMap)
    unsettled: BitMap = field(default_factory=BitMap)


@dataclass(frozen=True, slots=True)
class DaySets:
    """The players of one day of a game, as sets of numbers.

    Attributes:
        played: the players and payers of the day.
        new: players of the day who were not active on an earlier day.
        ever: players who were active on the day or on an earlier one.
        new_payers: payers of the day who bought nothing on an earlier day.
        new_by: `new` by dimension and value.
    """

    played: Played
    new: BitMap
    ever: BitMap
    new_payers: BitMap
    new_by: Split = field(default_factory=dict)

    @classmethod
    def of(cls, played: Played, known: EarlierPlayers, new_by: Split) -> "DaySets":
        """Build the sets of a day from its players and those of the days before."""
        ever = known.ever | played.active
        made = cls(played, played.active - known.ever, ever, played.payers - known.payers, new_by)
        # Players are numbered as they appear, so that `new` and `ever` are runs of numbers.
        made.new.run_optimize()
        made.ever.run_optimize()
        return made

    @property
    def active(self) -> BitMap:
        """Players of the day."""
        return self.played.active

    @property
    def payers(self) -> BitMap:
        """Players of the day who bought something."""
        return self.played.payers

    @property
    def bytes(self) -> int:
        """The memory of the sets."""
        sets: list[BitMap] = [*(getattr(self, name) for name in _SETS), *self.new_by.values()]
        statistics = [each.get_statistics() for each in sets]
        return int(self.played.bookings.nbytes) + sum(
            each["n_bytes_array_containers"] + each["n_bytes_bitset_containers"] + each["n_bytes_run_containers"]
            for each in statistics
        )

    @classmethod
    def read(cls, rows: pa.Table) -> "DaySets":
        """Read a file's one row: the columns of the table of sets, except the day and the game."""
        active, payers, new, ever, new_payers = (_read(rows, name) for name in _SETS)
        bookings = rows.column("bookings").combine_chunks().flatten().cast(MONEY)
        return cls(Played(active, payers, bookings), new, ever, new_payers, _read_split(rows))

    def row(self) -> pa.Table:
        """Return the sets as a file's one row: the columns of the table of sets, except the day and the game."""
        columns = {name: pa.array([getattr(self, name).serialize()], pa.binary()) for name in _SETS}
        bookings = self.played.bookings
        of_list = PLAYER_SETS.schema.field("bookings").type
        of_day = pa.ListArray.from_arrays([0, len(bookings)], bookings, type=of_list)
        split = [
            {"dimension": dimension, "value": value, "players": players.serialize()}
            for (dimension, value), players in self.new_by.items()
        ]
        new_by = pa.array([split], PLAYER_SETS.schema.field("new_by").type)
        return pa.table({**columns, "bookings": of_day, "new_by": new_by})


def _read(rows: pa.Table, name: str) -> BitMap:
    return BitMap.deserialize(rows.column(name)[0].as_py())


def _read_split(rows: pa.Table) -> Split:
    return {
        (each["dimension"], each["value"]): BitMap.deserialize(each["players"])
        for each in rows.column("new_by")[0].as_py()
    }


_NO_PLAYERS = Played(BitMap(), BitMap(), pa.array([], MONEY))
EMPTY = DaySets.of(_NO_PLAYERS, EarlierPlayers(), {})


@dataclass(frozen=True, slots=True)
class Newcomers:
    """The players of a day of a game who did something for the first time; see `DaySets`.

    Attributes:
        new: new players.
        payers: new payers.
        new_by: new players by dimension and value.
    """

    new: BitMap
    payers: BitMap
    new_by: Split


def as_set(numbers: Numbers) -> BitMap:
    """Convert numbers (uint32, any order) to a set."""
    # BitMap reads an array much faster than other sequences.
    return BitMap(array.array("I", numbers.tobytes()))


def as_numbers(players: BitMap) -> Numbers:
    """Convert a set to its numbers: uint32, ascending."""
    return np.frombuffer(players.to_array(), np.uint32)


@dataclass(slots=True)
class PlayerSets:
    """The table of sets. It keeps the most recently used sets in memory, by file, since a file never changes.

    It keeps the newcomers of every file that was asked for: all days together have each player once.

    Attributes:
        table: the table.
        cached_bytes: the memory of the sets that are kept.
    """

    table: TableFilesOf
    cached_bytes: int = field(default=0, init=False)
    _files: dict[Pair, FileEntry] = field(default_factory=dict)
    _cache: OrderedDict[str, DaySets] = field(default_factory=OrderedDict)
    _newcomers: dict[str, Newcomers] = field(default_factory=dict)

    def open(self) -> None:
        """Read the list of files from the table, which must be open."""
        self._files = {_pair(file): file for file in self.table.files}
        paths = {file.path for file in self._files.values()}
        self._newcomers = {path: each for path, each in self._newcomers.items() if path in paths}

    def pairs(self) -> set[Pair]:
        """Return the days of games that have players."""
        return set(self._files)

    def days(self, game: str) -> dict[date, FileEntry]:
        """Return the files of a game, by day."""
        return {day: file for (day, title), file in self._files.items() if title == game}

    def read(self, file: FileEntry) -> DaySets:
        """Read a file, unless its sets are in memory."""
        found = self._cache.get(file.path)
        if found is None:
            return self._keep(file.path, DaySets.read(self.table.rows_of(file)))
        self._cache.move_to_end(file.path)
        return found

    def write(self, pair: Pair, sets: DaySets) -> DataFile:
        """Write the sets of a day of a game to a file that no commit names yet."""
        file = self.table.write(sets.row(), {"event_date": str(pair[0]), "game_name": pair[1]})
        self._keep(file.path, sets)
        self._newcomers[file.path] = Newcomers(sets.new, sets.new_payers, sets.new_by)
        return file

    def newcomers(self, files: Iterable[FileEntry]) -> list[Newcomers]:
        """Read the newcomers of some files, in their order, unless they are in memory."""
        files = list(files)
        missing = [file for file in files if file.path not in self._newcomers]
        if missing:
            with ThreadPoolExecutor(_READERS) as pool:
                found = pool.map(self._read_newcomers, missing)
                self._newcomers.update(zip((file.path for file in missing), found, strict=True))
        return [self._newcomers[file.path] for file in files]

    def _read_newcomers(self, file: FileEntry) -> Newcomers:
        rows = self.table.rows_of(file)
        return Newcomers(_read(rows, "new"), _read(rows, "new_payers"), _read_split(rows))

    def _keep(self, path: str, sets: DaySets) -> DaySets:
        self._cache[path] = sets
        self.cached_bytes += sets.bytes
        while len(self._cache) > 1 and self.cached_bytes > _CACHED_BYTES:
            _, oldest = self._cache.popitem(last=False)
            self.cached_bytes -= oldest.bytes
        return sets


def _pair(file: FileEntry) -> Pair:
    return date.fromisoformat(file.partition["event_date"] or ""), file.partition["game_name"] or ""


@dataclass(slots=True)
class GameSets:
    """The sets of one game, with changes that are not committed yet.

    Attributes:
        game: the game's title.
        sets: the table of sets.
        written: the files of changed days, by day; no commit names them yet.
        removed: the committed files that they replace.
        moved: days whose players have changed.
        changed: days whose players, payers, new payers or bookings have changed.
        cohorts: days whose new players have changed.
        splits: days whose new players, or the values of their dimensions, have changed.
        split_of: splits the new players of a day by dimension and value.
    """

    game: str
    sets: PlayerSets
    split_of: Callable[[date, BitMap], Split] = lambda _day, _players: {}
    written: dict[date, DataFile] = field(default_factory=dict)
    removed: list[FileEntry] = field(default_factory=list)
    moved: set[date] = field(default_factory=set)
    changed: set[date] = field(default_factory=set)
    cohorts: set[date] = field(default_factory=set)
    splits: set[date] = field(default_factory=set)
    _files: dict[date, FileEntry] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin with the committed files."""
        self._files = self.sets.days(self.game)

    @property
    def days(self) -> set[date]:
        """The days that have players."""
        return set(self._files)

    def of(self, day: date) -> DaySets:
        """Return a day's sets, which are empty if the day has no players."""
        return self.sets.read(self._files[day]) if day in self._files else EMPTY

    def new_players(self) -> dict[date, BitMap]:
        """Return the players of each first day that has some, in ascending order."""
        return {day: each.new for day, each in self.newcomers().items() if each.new}

    def newcomers(self) -> dict[date, Newcomers]:
        """Return the newcomers of each day that has players, in ascending order."""
        days = sorted(self._files)
        return dict(zip(days, self.sets.newcomers(self._files[day] for day in days), strict=True))

    def begin_with(self, days: set[date]) -> None:
        """Mark days whose rows in other tables may not match the sets because a refresh ended early."""
        later = {day for day in self.days | days if day >= min(days, default=date.max)}
        self.moved |= days
        self.changed |= later
        self.cohorts |= later
        self.splits |= later

    def take(self, changed: Mapping[date, Played]) -> None:
        """Replace the players of some days, and update the sets of all later days that depend on them."""
        days, unsettled = sorted(changed), BitMap()
        for place, day in enumerate(days):
            known = self._put(day, changed[day], self._before(day, unsettled), is_read=True)
            until = days[place + 1] if place + 1 < len(days) else date.max
            unsettled = self._carry_on(day, until, known).unsettled

    def _before(self, day: date, unsettled: BitMap) -> EarlierPlayers:
        """Return the players before a day."""
        earlier = sorted(each for each in self._files if each < day)
        ever = self.of(earlier[-1]).ever if earlier else BitMap()
        payers = [each.payers for each in self.sets.newcomers(self._files[each] for each in earlier)]
        return EarlierPlayers(ever, BitMap.union(*payers) if payers else BitMap(), unsettled)

    def _carry_on(self, after: date, until: date, known: EarlierPlayers) -> EarlierPlayers:
        """Update the days between two changed ones, until one is reached that the first no longer affects."""
        for day in sorted(each for each in self._files if after < each < until):
            sets = self.of(day)
            is_same = sets.ever == known.ever | sets.active and sets.new == sets.active - known.ever
            if is_same and not known.unsettled:
                break
            known = self._put(day, sets.played, known)
        return known

    def _put(self, day: date, played: Played, known: EarlierPlayers, *, is_read: bool = False) -> EarlierPlayers:
        """Replace a day's sets; return the players before the day after it.

        Args:
            day: the day.
            played: its players.
            known: the players before it.
            is_read: True if the values of the players' dimensions may have changed too.
        """
        old, new = self.of(day), played.active - known.ever
        is_same_split = new == old.new and not is_read
        made = DaySets.of(played, known, old.new_by if is_same_split else self.split_of(day, new))
        if made != old:
            if old.active != made.active:
                self.moved.add(day)
            if old.new != made.new:
                self.cohorts.add(day)
            if (old.new, old.new_by) != (made.new, made.new_by):
                self.splits.add(day)
            if (old.played, old.new_payers) != (made.played, made.new_payers):
                self.changed.add(day)
            self._replace(day, made)
        unsettled = (known.unsettled | (old.new_payers ^ made.new_payers)) - (old.payers & made.payers)
        return EarlierPlayers(made.ever, known.payers | made.payers, unsettled)

    def _replace(self, day: date, sets: DaySets) -> None:
        former, uncommitted = self._files.pop(day, None), self.written.pop(day, None)
        if uncommitted is not None:
            self.sets.table.discard([uncommitted])
        elif former is not None:
            self.removed.append(former)
        if sets.active:
            file = self.sets.write((day, self.game), sets)
            self.written[day] = file
            self._files[day] = FileEntry(file.path, file.size, file.partition)


def window(sets: GameSets, day: date, days: int) -> int:
    """Count the different players of the `days` days that end with `day`."""
    return len(BitMap.union(*(sets.of(each).active for each in before(day, range(days)) if each in sets.days)))


def activity(sets: GameSets, days: Iterable[date]) -> list[dict[str, object]]:
    """Compute the rows of the table of active players for days that have players."""
    rows = []
    for day in days:
        dau, wau, mau = len(sets.of(day).active), window(sets, day, WEEK), window(sets, day, MONTH)
        row = {"event_date": day, "game_name": sets.game, "dau": dau, "wau": wau, "mau": mau, "stickiness": dau / mau}
        rows.append(row)
    return rows


def after(day: date, distances: Iterable[int]) -> list[date]:
    """Return the days at some distances (in days) after one, without those past the calendar's end."""
    return [date.fromordinal(n) for each in distances if (n := day.toordinal() + each) <= date.max.toordinal()]


def before(day: date, distances: Iterable[int]) -> list[date]:
    """Return the days at some distances (in days) before one, without those before the calendar's beginning."""
    return [date.fromordinal(n) for each in distances if (n := day.toordinal() - each) > 0]
