"""The gold tables that KPIs are computed from: finds the days of games that have changed.

A merge of gold replaces whole files, most of whose rows don't change. So a day of a game counts as changed if its
removed and added rows differ in their number or in a sum of hashes of the values that KPIs depend on.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from gamelake.delta.appends import schema_of
from gamelake.delta.log.codec import (
    FileEntry,
    changes_rows,
    commit_info_of,
    decode_entry,
    following_entries,
    live_files,
    preceding_entries,
)
from gamelake.delta.open_tables import OpenTables
from gamelake.model.naming import SILVER_EVENTS
from gamelake.objects.store import Store
from gamelake.scans.datasets import dataset, missing_files
from gamelake.scans.sql_engine import Engine, without_zones
from gamelake.serving.gold.history import ReplacedFiles, TablePosition, changes_since, position_at
from gamelake.serving.gold.runs import KeyRun, runs_of
from gamelake.serving.gold.table import SOURCE_NOTE
from gamelake.serving.kpis.tables import DIMENSIONS, MONEY

# A day of a game.
Pair = tuple[date, str]
_FILES_AT_ONCE = 8
# Arrow keeps what it has read of each file of a dataset: 3,650 files at once took 330 MiB more.
_COMPARED_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class SourceTable:
    """One of gold's tables.

    Attributes:
        name: the table's name.
        keys: the day and, if the files are sorted by it next, the game: the first columns of the sort order.
        rows: the condition, in SQL, that is true for rows that count.
        reads: the columns that the KPIs depend on, with the types to use if there is no table.
        digest: the SQL that hashes a row's values of these columns, except the day and the game.
    """

    name: str
    keys: tuple[str, ...]
    rows: str
    reads: pa.Schema
    digest: str

    @property
    def path(self) -> str:
        """The table's path in the lakehouse."""
        return f"gold/{self.name}"


def first_value(dimension: str) -> str:
    """Return the SQL of a dimension's first value on a player's day; its column has 16 digits before the value."""
    return f"substr(first_{dimension}, 17)"


_PAIR = (("event_date", pa.date32()), ("game_name", pa.string()))
# A key whose only events are the platform's own tests has a row without events.
_OF_A_GAME = "event_date IS NOT NULL AND game_name IS NOT NULL"
PLAYER_DAYS = SourceTable(
    "all_player_days",
    ("event_date", "game_name"),
    f"{_OF_A_GAME} AND gamer_id IS NOT NULL AND event_count > 0",
    pa.schema(
        [
            *_PAIR,
            ("gamer_id", pa.string()),
            ("event_count", pa.int64()),
            ("purchase_count", pa.int64()),
            ("bookings", MONEY),
            *((f"first_{name}", pa.string()) for name in DIMENSIONS),
        ]
    ),
    f"hash(gamer_id, purchase_count > 0, bookings, {', '.join(map(first_value, DIMENSIONS))})",
)
SESSIONS = SourceTable(
    "all_sessions",
    ("event_date", "game_name"),
    f"{_OF_A_GAME} AND gamer_id IS NOT NULL AND session_id <> '' AND event_count > 0",
    pa.schema(
        [
            *_PAIR,
            ("gamer_id", pa.string()),
            ("session_id", pa.string()),
            ("event_count", pa.int64()),
            ("began", pa.timestamp("us")),
            ("ended", pa.timestamp("us")),
        ]
    ),
    "hash(epoch_us(ended) - epoch_us(began))",
)
HOURS = SourceTable(
    "kpi_hourly",
    ("event_date",),
    f"{_OF_A_GAME} AND events > 0",
    pa.schema([*_PAIR, ("events", pa.int64()), ("purchases", pa.int64()), ("bookings", MONEY)]),
    "hash(events, purchases, bookings)",
)
SOURCES = (PLAYER_DAYS, SESSIONS, HOURS)


def changed_sql(source: SourceTable) -> str:
    """Return the statement for the days of games whose rows in the relation `came` differ from those in `went`."""
    each = f"SELECT event_date, game_name, CAST({source.digest} >> 1 AS BIGINT) AS part"
    return f"""
        SELECT event_date, game_name FROM (
          SELECT event_date, game_name, 1 AS rows, part FROM ({each} FROM came WHERE {source.rows})
          UNION ALL SELECT event_date, game_name, -1, -part FROM ({each} FROM went WHERE {source.rows}))
        GROUP BY ALL HAVING sum(rows) <> 0 OR sum(part) <> 0"""  # noqa: S608 # constants


@dataclass(frozen=True, slots=True)
class SourceChanges:
    """The files that were added to a table and removed from it.

    Attributes:
        source: the table.
        position: the version up to which changes were read; None for a table that does not exist.
        came: the added files.
        went: the removed files.
        handle: the table at that version or a newer one; None if it does not exist.
        replaced: the files that each commit replaced.
    """

    source: SourceTable
    position: TablePosition | None
    came: Sequence[FileEntry]
    went: Sequence[FileEntry]
    handle: DeltaTable | None
    replaced: Sequence[ReplacedFiles] = ()
    _runs: list[KeyRun] = field(default_factory=list)

    def files_of(self, game: str, days: Iterable[date]) -> dict[date, list[FileEntry]]:
        """Return the files that may have rows of a game on some days, by day."""
        if self.handle is not None and not self._runs:
            self._runs.extend(runs_of(self.handle, self.source.keys))
        count = len(self.source.keys)
        return {day: [run.file for run in self._runs if may_have(run, (day, game)[:count])] for day in days}


def may_have(run: KeyRun, values: tuple[object, ...]) -> bool:
    """Return True if a file may have a row whose first key columns have these values."""
    if run.bounds is None:
        return True
    key = tuple((False, value) for value in values)
    least, greatest = run.bounds
    first, last = min(len(least), len(key)), min(len(greatest), len(key))
    return least[:first] <= key[:first] and key[:last] <= greatest[:last]


@dataclass(slots=True)
class GoldSources:
    """The gold tables of one lakehouse. They stay open from refresh to refresh; one thread uses them at a time.

    Attributes:
        store: the lakehouse.
    """

    store: Store
    _opened: OpenTables = field(init=False)

    def __post_init__(self) -> None:
        """Open nothing yet."""
        self._opened = OpenTables(self.store, most=len(SOURCES) + 1)

    def rows_of_day(self, table: str, day: date) -> pa.Table | None:
        """Read a gold table's rows of one day: all columns, unordered. Return None if the table does not exist."""
        try:
            handle = self._opened.newest(table)
        except TableNotFoundError:
            return None
        files = [run.file for run in runs_of(handle, ("event_date",)) if may_have(run, (day,))]
        return dataset(self.store.location, table, schema_of(handle), files).to_table(
            filter=pc.field("event_date") == day
        )

    def all(self) -> dict[str, SourceChanges]:
        """Return all files of each table as added files, by the table's path; no files if a table does not exist."""
        return {source.path: self._since(source, None) for source in SOURCES}

    def since(self, positions: Mapping[str, TablePosition]) -> dict[str, SourceChanges] | None:
        """Return the changes of each table since a position, by path; None if one can't be followed from there.

        Args:
            positions: the positions by path; a table without one counts as new.
        """
        found = {}
        for source in SOURCES:
            position = positions.get(source.path)
            changes = self._since(source, position)
            if position is not None and changes.position is None:
                return None
            found[source.path] = changes
        return found

    def _since(self, source: SourceTable, position: TablePosition | None) -> SourceChanges:
        # Read the changes before the table: rows of a version in between are then computed twice, but never missed.
        changes = None if position is None else changes_since(self.store, source.path, position)
        nothing = SourceChanges(source, None, (), (), None)
        if position is not None and changes is None:
            return nothing
        try:
            handle = self._opened.newest(source.path)
        except TableNotFoundError:
            return nothing
        if changes is None:
            now = position_at(self.store, source.path, handle.version(), handle.schema().to_json())
            return SourceChanges(source, now, live_files(handle), (), handle)
        balance, files = Counter[str](), dict[str, FileEntry]()
        replaced = (*changes.replaced, *changes.erased)
        came = (*changes.appended, *(file for each in replaced for file in each.added))
        went = [file for each in replaced for file in each.removed]
        for number, moved in ((1, came), (-1, went)):
            for file in moved:
                balance[file.path] += number
                files[file.path] = file
        # A file that was added and removed in between cancels out; it may be deleted already.
        only_came, only_went = ([files[path] for path in side] for side in (+balance, -balance))
        return SourceChanges(source, changes.position, only_came, only_went, handle, replaced)

    def give(self, sql: Engine, name: str, changes: SourceChanges, files: Sequence[FileEntry]) -> None:
        """Register the rows of some files as the relation `name`, with the columns `reads` of their table.

        Args:
            sql: the engine.
            name: the relation's name.
            changes: the table's changes.
            files: the files; ignored if the table does not exist.

        Raises:
            FileNotFoundError: a file is deleted already.
        """
        location, source = self.store.location, changes.source
        if changes.handle is None:
            sql.give(name, source.reads.empty_table())
            return
        if missing := missing_files(self.store, source.path, files):
            raise FileNotFoundError(f"{source.path}/{missing[0].relative_path} is gone")
        # A column that a newer platform added is null until the table is computed again.
        existing = schema_of(changes.handle)
        columns = pa.schema(
            [existing.field(each.name) if each.name in existing.names else each for each in source.reads]
        )
        sql.give(name, dataset(location, source.path, without_zones(columns), files))

    def changed(self, sql: Engine, changes: Mapping[str, SourceChanges], *, each_commit: bool) -> set[Pair]:
        """Find the days of games that have changed.

        Args:
            sql: the engine that compares rows.
            changes: the changes of each table, by path.
            each_commit: True to include days that one commit changed and a later one changed back.

        Raises:
            FileNotFoundError: a file is deleted already.
        """
        found: set[Pair] = set()
        for source in SOURCES:
            of_source = changes[source.path]
            commits = [(each.added, each.removed) for each in of_source.replaced] if each_commit else []
            for came, went in [(of_source.came, of_source.went), *commits]:
                for part in _comparable(came, went):
                    self.give(sql, "came", of_source, part)
                    self.give(sql, "went", of_source, went)
                    rows = sql.table(changed_sql(source))
                    found |= set(zip(rows.column(0).to_pylist(), rows.column(1).to_pylist(), strict=True))
        return found


def _comparable(came: Sequence[FileEntry], went: Sequence[FileEntry]) -> list[Sequence[FileEntry]]:
    """Split added files into parts that can be compared with the removed ones one after the other."""
    if went:
        return [came]
    # Without removed rows each added row is a change, so that few files are in memory when all of gold is read.
    return [came[start : start + _COMPARED_AT_ONCE] for start in range(0, len(came), _COMPARED_AT_ONCE)]


def portions(days: Sequence[date], files: Mapping[date, Sequence[Any]]) -> Iterator[list[date]]:
    """Split days into parts that read at most `_FILES_AT_ONCE` files each; one day alone may need more.

    Args:
        days: the days, in order.
        files: the files that each day reads.
    """
    part: list[date] = []
    seen: set[str] = set()
    for day in days:
        of_day = {file.path for file in files[day]}
        if part and len(seen | of_day) > _FILES_AT_ONCE:
            yield part
            part, seen = [], set()
        part.append(day)
        seen |= of_day
    if part:
        yield part


def waiting_since(store: Store, positions: Mapping[str, TablePosition]) -> float | None:
    """Return the time (seconds since 1970) of silver's oldest commit that the KPIs lack; None if they lack none.

    Args:
        store: the lakehouse.
        positions: the versions of gold's tables that the KPIs were computed from, by path.
    """
    taken = [version for path, each in positions.items() if (version := _silver_version(store, path, each)) is not None]
    for _, entry in following_entries(store, SILVER_EVENTS, min(taken, default=-1)):
        actions = decode_entry(entry)
        if changes_rows(actions):
            return float(commit_info_of(actions).get("timestamp", 0)) / 1000
    return None


def _silver_version(store: Store, table: str, position: TablePosition) -> int | None:
    """Return the version of silver that a version of a gold table was computed from; None if no note has it."""
    notes = (commit_info_of(actions) for _, actions in preceding_entries(store, table, position.version))
    source = next((note[SOURCE_NOTE] for note in notes if SOURCE_NOTE in note), None)
    return None if source is None else msgspec.json.decode(source, type=TablePosition).version
