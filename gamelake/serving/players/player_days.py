"""Reads gold's player days: the rows that changed since a version, and all rows at a version."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from gamelake.delta.appends import schema_of
from gamelake.delta.log.codec import FileEntry, live_files
from gamelake.delta.tables import open_table
from gamelake.objects.store import Store
from gamelake.scans.datasets import dataset, missing_files
from gamelake.scans.sql_engine import Engine, without_zones
from gamelake.serving.gold.history import TablePosition, changes_since, position_at
from gamelake.serving.gold.runs import runs_of
from gamelake.serving.kpis.sources import PLAYER_DAYS

# About 300,000 player days.
_PART_BYTES = 4 * 2**20
# What is read of player days. A column that the table does not have yet is null.
_COLUMNS = pa.schema(
    [
        ("event_date", pa.date32()),
        ("game_name", pa.string()),
        ("gamer_id", pa.string()),
        ("session_count", pa.int64()),
        ("event_count", pa.int64()),
        ("purchase_count", pa.int64()),
        ("bookings", pa.decimal128(38, 6)),
        ("country", pa.string()),
        ("platform", pa.string()),
        ("app_version", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class ChangedFiles:
    """The files that were added to player days and removed from them.

    Attributes:
        came: the added files.
        went: the removed files.
    """

    came: Sequence[FileEntry]
    went: Sequence[FileEntry]

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(file.size for file in (*self.came, *self.went))

    def parts(self) -> "Iterator[ChangedFiles]":
        """Split added files into parts that fit in the engine's memory; files that replace others stay together."""
        if self.went:
            yield self
            return
        part: list[FileEntry] = []
        for file in self.came:
            if part and sum(each.size for each in part) + file.size > _PART_BYTES:
                yield ChangedFiles(part, ())
                part = []
            part.append(file)
        if part:
            yield ChangedFiles(part, ())


@dataclass(slots=True)
class PlayerDays:
    """Gold's player days, read up to a version. One thread uses them at a time.

    Attributes:
        store: the lakehouse.
        position: that version; None before `begin`, or if there is no table.
    """

    store: Store
    position: TablePosition | None = None
    _handle: DeltaTable | None = field(default=None)

    def begin(self) -> ChangedFiles:
        """Open the newest version, and return all its files as added files."""
        self.position = self._handle = None
        try:
            handle = open_table(self.store.location, PLAYER_DAYS.path)
        except TableNotFoundError:
            return ChangedFiles((), ())
        self._handle = handle
        self.position = position_at(self.store, PLAYER_DAYS.path, handle.version(), handle.schema().to_json())
        return ChangedFiles(live_files(handle), ())

    def advance(self) -> ChangedFiles | None:
        """Open the newest version, and return the changes since the position; None if the log no longer has them."""
        changes = None if self.position is None else changes_since(self.store, PLAYER_DAYS.path, self.position)
        if changes is None:
            return None
        if changes.position == self.position:
            return ChangedFiles((), ())
        self.position = changes.position
        self._handle = open_table(self.store.location, PLAYER_DAYS.path, changes.position.version)
        replaced = (*changes.replaced, *changes.erased)
        came = [*changes.appended, *(file for each in replaced for file in each.added)]
        went = [file for each in replaced for file in each.removed]
        balance = Counter(file.path for file in came)
        balance.subtract(file.path for file in went)
        # A file that was both added and removed since then cancels out; it may be deleted already.
        return ChangedFiles(
            [file for file in came if balance[file.path] > 0], [file for file in went if balance[file.path] < 0]
        )

    def give(self, sql: Engine, name: str, files: Sequence[FileEntry]) -> None:
        """Register the rows of some files as the relation `name`.

        Raises:
            FileNotFoundError: a file is deleted already.
        """
        if self._handle is None or not files:
            sql.give(name, _COLUMNS.empty_table())
            return
        if missing := missing_files(self.store, PLAYER_DAYS.path, files):
            raise FileNotFoundError(f"{PLAYER_DAYS.path}/{missing[0].relative_path} is gone")
        schema = schema_of(self._handle)
        columns = pa.schema([schema.field(each.name) if each.name in schema.names else each for each in _COLUMNS])
        sql.give(name, dataset(self.store.location, PLAYER_DAYS.path, without_zones(columns), files))

    def give_since(self, sql: Engine, name: str, day: date) -> None:
        """Register the rows from a day on, and perhaps some earlier ones, as the relation `name`."""
        runs = [] if self._handle is None else runs_of(self._handle, ("event_date",))
        self.give(sql, name, [run.file for run in runs if run.bounds is None or run.bounds[1][:1] >= ((False, day),)])

    def give_players(self, sql: Engine, name: str, keys: pa.Array, key_sql: str) -> None:
        """Read all days of some players into memory, and register them as the relation `name`.

        Args:
            sql: the engine.
            name: the relation's name.
            keys: int64, the players' keys.
            key_sql: the SQL of a row's key.
        """
        self.give(sql, "every_day", self._files)
        sql.give("wanted", pa.table({"key": keys}))
        sql.give(name, sql.table(f"SELECT * FROM every_day WHERE {key_sql} IN (SELECT key FROM wanted)"))  # noqa: S608

    def give_games(self, sql: Engine, name: str, games: Collection[str]) -> None:
        """Register all days of some games as the relation `name`."""
        self.give(sql, "every_day", self._files)
        sql.give("wanted_games", pa.table({"game_name": pa.array(sorted(games), pa.string())}))
        rows = sql.table("SELECT * FROM every_day SEMI JOIN wanted_games USING (game_name)")
        sql.give(name, rows)

    @property
    def _files(self) -> list[FileEntry]:
        return [] if self._handle is None else live_files(self._handle)
