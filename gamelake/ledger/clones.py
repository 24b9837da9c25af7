"""Clones of tables: their records, the files that they share with their sources, and dropping a clone.

A clone's record is written before its tables and deleted after them, so that a crash leaves no table without a record.
Vacuum keeps the files that a clone names until the clone is dropped.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import msgspec
from deltalake.exceptions import DeltaError, TableNotFoundError

from gamelake.delta.log.codec import LOG_FOLDER, entry_path, live_paths, object_path
from gamelake.delta.log.table_log import TableLog
from gamelake.delta.tables import open_table
from gamelake.model.errors import StartupError
from gamelake.objects.records import Records
from gamelake.objects.store import Store
from gamelake.scans.player_rows import PlayerFilter, player_table, rows_in_file


class CloneError(StartupError):
    """A clone can't be created, or no clone has the name."""


class CloneKind(StrEnum):
    """The kind of a clone's table.

    Attributes:
        SHALLOW: its log names the files of its source.
        COPY: it has copies of the files.
    """

    SHALLOW = "shallow"
    COPY = "copy"


class ClonedTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table of a clone.

    Attributes:
        table: the clone's path.
        source: the path of the table that was cloned.
        version: of the source.
        kind: a shallow clone, or a copy.
        files: the number of files in that version.
        rows: the number of rows in that version.
        bytes: the size of the files. A shallow clone does not store them again.
    """

    table: str
    source: str
    version: int
    kind: CloneKind
    files: int
    rows: int
    bytes: int


class Clone(msgspec.Struct, frozen=True, kw_only=True):
    """Copies of tables for experiments.

    Attributes:
        name: of the clone; the paths of its tables contain it.
        made_at: when it was created.
        tables: its tables.
    """

    name: str
    made_at: datetime
    tables: tuple[ClonedTable, ...]


class HeldClone(msgspec.Struct, frozen=True, kw_only=True):
    """A clone, and the storage that it costs in the tables of its sources.

    Attributes:
        clone: the clone.
        held_bytes: the size of the files that the sources have replaced since, and that vacuum keeps for the clone.
    """

    clone: Clone
    held_bytes: int


@dataclass(frozen=True, slots=True)
class Clones:
    """The clones of a lakehouse.

    Attributes:
        store: the lakehouse.
    """

    store: Store

    @property
    def _records(self) -> Records[Clone]:
        return Records(self.store, "_gamelake/clones", Clone)

    def all(self) -> list[Clone]:
        """Read the records of all clones in the order of their names."""
        return self._records.all()

    def named(self, name: str) -> Clone:
        """Read the record of one clone.

        Raises:
            CloneError: no clone has that name. The message lists the clones.
        """
        clone = self._records.read(name)
        if clone is None:
            there = ", ".join(each.name for each in self.all())
            raise CloneError(f"there is no clone '{name}'; the clones are: {there or 'none'}")
        return clone

    def begin(self, clone: Clone) -> None:
        """Write the record of a clone, before its tables are created.

        Raises:
            CloneError: another clone has that name.
        """
        if not self._records.add(clone.name, clone):
            raise CloneError(f"there is a clone '{clone.name}' already: drop it (--drop {clone.name}) or name another")

    def drop(self, clone: Clone) -> None:
        """Delete a clone: the log of each table, then its other files, and at last the record."""
        for table in clone.tables:
            for folder in (f"{table.table}/{LOG_FOLDER}", table.table):
                self.store.delete_all(self.store.paths(folder))
        self._records.delete(clone.name)

    def named_files(self, source: str) -> Mapping[str, frozenset[str]]:
        """Return the files of a table that shallow clones name.

        Args:
            source: the table's path.

        Returns:
            The names of the clones by the file's path under the table's folder.
        """
        found: defaultdict[str, set[str]] = defaultdict(set)
        for clone in self.all():
            for table in clone.tables:
                if table.source == source and table.kind is CloneKind.SHALLOW:
                    for path in self._named_paths(table):
                        if path.startswith(f"{source}/"):
                            found[path.removeprefix(f"{source}/")].add(clone.name)
        return {place: frozenset(names) for place, names in found.items()}

    def held(self) -> list[HeldClone]:
        """Return all clones in the order of their names, with the bytes that vacuum keeps for each."""
        sizes: Counter[str] = Counter()
        clones = self.all()
        for source in {table.source for clone in clones for table in clone.tables if table.kind is CloneKind.SHALLOW}:
            live = set(live_paths(open_table(self.store.location, source)))
            there = {each.path.removeprefix(f"{source}/"): each.size for each in self.store.objects(source)}
            for place, names in self.named_files(source).items():
                sizes.update(dict.fromkeys(names, 0 if place in live else there.get(place, 0)))
        return [HeldClone(clone=each, held_bytes=sizes[each.name]) for each in clones]

    def with_rows_of(self, people: PlayerFilter) -> list[Clone]:
        """Return the clones that have rows of these players in any version; a clone that can't be read is included."""
        return [clone for clone in self.all() if any(self._has_rows(table.table, people) for table in clone.tables)]

    def _has_rows(self, table: str, people: PlayerFilter) -> bool:
        try:
            players = player_table(self.store, table)
        except TableNotFoundError:
            return False
        except Exception:  # a clone may hold anything: one that can't be read may have such rows
            return True
        if players is None:
            return False
        return any(rows_in_file(self.store, players, place, people) for place in self._places(table) or ())

    def _named_paths(self, table: ClonedTable) -> Iterator[str]:
        """Return the paths in the lakehouse of the files that a shallow clone names.

        If its log is not written yet, these are the files that it will name.
        """
        places = self._places(table.table)
        if places is None:
            try:
                named = live_paths(open_table(self.store.location, table.source, table.version))
            except DeltaError:
                if self.store.get(entry_path(table.source, table.version)) is not None:
                    raise
                # The clone was never completed, and log cleanup has deleted the version since.
                return iter(())
            return (object_path(self.store.location, table.source, place) for place in named)
        return (object_path(self.store.location, table.table, place) for place in places)

    def _places(self, table: str) -> set[str] | None:
        """Return the files that all versions of a clone name, since analysts may rewrite some; None without a table."""
        try:
            live = set(live_paths(open_table(self.store.location, table)))
        except TableNotFoundError:
            return None
        log = TableLog.read(self.store, table)
        return live | set(log.live) | set(log.removed)
