"""Each day of a game as sets of players' numbers, and the activity windows and retention computed from them."""

import array
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date

import pyarrow as pa
from pyroaring import BitMap

from gamelake.delta.data_files import DataFile
from gamelake.delta.log.codec import FileEntry
from gamelake.serving.kpis.numbers import Numbers
from gamelake.serving.kpis.sources import Pair
from gamelake.serving.kpis.table_files import TableFilesOf
from gamelake.serving.kpis.tables import MONTH, PLAYER_SETS, RETENTION_DAYS, WEEK

# A day with 1,000,000 of 10,000,000 players takes 1.3 MB, so that a month of them is kept.
_CACHED_BYTES = 64 * 2**20
_COLUMNS = tuple(name for name in PLAYER_SETS.columns if name not in PLAYER_SETS.partition_by)


@dataclass(frozen=True, slots=True)
class DaySets:
    """The players of one day of a game, as sets of numbers.

    Attributes:
        active: players of the day.
        payers: players of the day who bought something.
        new: players of the day who were not active on an earlier day.
        ever: players who were active on the day or on an earlier one.
    """

    active: BitMap
    payers: BitMap
    new: BitMap
    ever: BitMap

    @classmethod
    def of(cls, active: BitMap, payers: BitMap, before: BitMap) -> "DaySets":
        """Build the sets of a day; `before` has the players who were active on an earlier day."""
        made = cls(active, payers, active - before, before | active)
        # Players are numbered as they appear, so that `new` and `ever` are runs of numbers.
        made.new.run_optimize()
        made.ever.run_optimize()
        return made

    @property
    def bytes(self) -> int:
        """The memory of the sets."""
        statistics = [each.get_statistics() for each in (self.active, self.payers, self.new, self.ever)]
        return sum(
            each["n_bytes_array_containers"] + each["n_bytes_bitset_containers"] + each["n_bytes_run_containers"]
            for each in statistics
        )

    @classmethod
    def read(cls, rows: pa.Table) -> "DaySets":
        """Read a file's one row: binary columns `active`, `payers`, `new` and `ever`."""
        return cls(*(BitMap.deserialize(rows.column(name)[0].as_py()) for name in _COLUMNS))

    def row(self) -> pa.Table:
        """Return the sets as a file's one row: binary columns `active`, `payers`, `new` and `ever`."""
        sets = (self.active, self.payers, self.new, self.ever)
        return pa.table(
            {name: pa.array([each.serialize()], pa.binary()) for name, each in zip(_COLUMNS, sets, strict=True)}
        )


EMPTY = DaySets(BitMap(), BitMap(), BitMap(), BitMap())


def as_set(numbers: Numbers) -> BitMap:
    """Convert numbers (uint32, any order) to a set."""
    # BitMap reads an array much faster than other sequences.
    return BitMap(array.array("I", numbers.tobytes()))


@dataclass(slots=True)
class PlayerSets:
    """The table of sets. It keeps the most recently used sets in memory, by file, since a file never changes.

    Attributes:
        table: the table.
        cached_bytes: the memory of the sets that are kept.
    """

    table: TableFilesOf
    cached_bytes: int = field(default=0, init=False)
    _files: dict[Pair, FileEntry] = field(default_factory=dict)
    _cache: OrderedDict[str, DaySets] = field(default_factory=OrderedDict)

    def open(self) -> None:
        """Read the list of files from the table, which must be open."""
        self._files = {_pair(file): file for file in self.table.files}

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
        return file

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
        cohorts: days whose new players have changed.
    """

    game: str
    sets: PlayerSets
    written: dict[date, DataFile] = field(default_factory=dict)
    removed: list[FileEntry] = field(default_factory=list)
    moved: set[date] = field(default_factory=set)
    cohorts: set[date] = field(default_factory=set)
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

    def begin_with(self, days: set[date]) -> None:
        """Mark days whose rows in other tables may not match the sets because a refresh ended early."""
        self.moved |= days
        self.cohorts |= {day for day in self.days | days if day >= min(days, default=date.max)}

    def take(self, changed: Mapping[date, tuple[BitMap, BitMap]]) -> None:
        """Replace the players and payers of some days, and update `new` and `ever` of all later days.

        Args:
            changed: for each day, the players and the payers.
        """
        days = sorted(changed)
        for place, day in enumerate(days):
            before = max((each for each in self._files if each < day), default=day)
            ever = self.of(before).ever if before < day else BitMap()
            known = self._put(day, *changed[day], ever)
            until = days[place + 1] if place + 1 < len(days) else date.max
            self._carry_on(day, until, known)

    def _carry_on(self, after: date, until: date, ever: BitMap) -> None:
        """Update the days between two changed ones, until one is reached that the first no longer affects."""
        for day in sorted(each for each in self._files if after < each < until):
            sets = self.of(day)
            if sets.ever == ever | sets.active and sets.new == sets.active - ever:
                return
            ever = self._put(day, sets.active, sets.payers, ever)

    def _put(self, day: date, active: BitMap, payers: BitMap, before: BitMap) -> BitMap:
        """Replace a day's sets; return the players who were active on the day or earlier."""
        old, made = self.of(day), DaySets.of(active, payers, before)
        if made != old:
            if old.active != active:
                self.moved.add(day)
            if old.new != made.new:
                self.cohorts.add(day)
            self._replace(day, made)
        return made.ever

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


def retention(sets: GameSets, cohorts: Iterable[date], today: date) -> list[dict[str, object]]:
    """Compute the retention rows of the cohorts that have players; None for a day that has not begun."""
    rows = []
    for cohort in cohorts:
        new = sets.of(cohort).new
        if new:
            row: dict[str, object] = {"cohort_date": cohort, "game_name": sets.game, "new_players": len(new)}
            for n in RETENTION_DAYS:
                back = None
                if (today - cohort).days >= n:
                    back = new.intersection_cardinality(sets.of(date.fromordinal(cohort.toordinal() + n)).active)
                row[f"day{n}_players"] = back
                row[f"day{n}_retention"] = None if back is None else back / len(new)
            rows.append(row)
    return rows


def after(day: date, distances: Iterable[int]) -> list[date]:
    """Return the days at some distances (in days) after one, without those past the calendar's end."""
    return [date.fromordinal(n) for each in distances if (n := day.toordinal() + each) <= date.max.toordinal()]


def before(day: date, distances: Iterable[int]) -> list[date]:
    """Return the days at some distances (in days) before one, without those before the calendar's beginning."""
    return [date.fromordinal(n) for each in distances if (n := day.toordinal() - each) > 0]
