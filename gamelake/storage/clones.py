"""Clones of tables: their records, the files of other tables that they name, and how a clone is dropped.

A clone's record is written before its tables are made and deleted after the last of them, so that a crash leaves
nothing without a name. Vacuum keeps the files that a clone names until the clone is dropped.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import msgspec
from deltalake.exceptions import DeltaError, TableNotFoundError

from gamelake.model.errors import StartupError
from gamelake.storage.delta_log import LOG_FOLDER, entry_path, live_paths, object_path
from gamelake.storage.player_rows import PlayerFilter, player_table, rows_in_file
from gamelake.storage.store import Store
from gamelake.storage.table_log import TableLog
from gamelake.storage.tables import open_table

_FOLDER = "_gamelake/clones"


class CloneError(StartupError):
    """A clone can't be made, or no clone has that name."""


class CloneKind(StrEnum):
    """Whether a table of a clone names the files of its source, or has files of its own."""

    SHALLOW = "shallow"
    COPY = "copy"


class ClonedTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table of a clone, and its source at a version; `bytes` is what a query may read, not what the clone costs."""

    table: str
    source: str
    version: int
    kind: CloneKind
    files: int
    rows: int
    bytes: int


class Clone(msgspec.Struct, frozen=True, kw_only=True):
    """Copies of tables for experiments, under one name."""

    name: str
    made_at: datetime
    tables: tuple[ClonedTable, ...]


class HeldClone(msgspec.Struct, frozen=True, kw_only=True):
    """A clone, and the bytes of files that its sources have replaced since, and that vacuum keeps for the clone."""

    clone: Clone
    held_bytes: int


@dataclass(frozen=True, slots=True)
class Clones:
    """The clones of a lakehouse."""

    store: Store

    def all(self) -> list[Clone]:
        """All of them, by name."""
        found = (self.store.get(path) for path in self.store.paths(_FOLDER))
        return [msgspec.json.decode(each, type=Clone) for each in found if each is not None]

    def named(self, name: str) -> Clone:
        """One of them.

        Raises:
            CloneError: no clone has that name.
        """
        note = self.store.get(_note(name))
        if note is None:
            there = ", ".join(each.name for each in self.all())
            raise CloneError(f"there is no clone '{name}'; the clones are: {there or 'none'}")
        return msgspec.json.decode(note, type=Clone)

    def begin(self, clone: Clone) -> None:
        """Write the record of a clone whose tables are made next.

        Raises:
            CloneError: another clone has that name.
        """
        if not self.store.put_new(_note(clone.name), msgspec.json.encode(clone)):
            raise CloneError(f"there is a clone '{clone.name}' already: drop it (--drop {clone.name}) or name another")

    def drop(self, clone: Clone) -> None:
        """Delete a clone: first the logs of its tables, then the files that are its own."""
        for table in clone.tables:
            for folder in (f"{table.table}/{LOG_FOLDER}", table.table):
                self.store.delete_all(self.store.paths(folder))
        self.store.delete(_note(clone.name))

    def named_files(self, source: str) -> Mapping[str, frozenset[str]]:
        """The files of a table that clones name, by path under the table's folder, with the names of the clones."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for clone in self.all():
            for table in clone.tables:
                if table.source == source and table.kind is CloneKind.SHALLOW:
                    for path in self._named_paths(table):
                        if path.startswith(f"{source}/"):
                            found[path.removeprefix(f"{source}/")].add(clone.name)
        return {place: frozenset(names) for place, names in found.items()}

    def held(self) -> list[HeldClone]:
        """All clones, with the bytes that vacuum keeps for each."""
        sizes: Counter[str] = Counter()
        clones = self.all()
        for source in {table.source for clone in clones for table in clone.tables if table.kind is CloneKind.SHALLOW}:
            live = set(live_paths(open_table(self.store.location, source)))
            there = {each.path.removeprefix(f"{source}/"): each.size for each in self.store.objects(source)}
            for place, names in self.named_files(source).items():
                sizes.update(dict.fromkeys(names, 0 if place in live else there.get(place, 0)))
        return [HeldClone(clone=each, held_bytes=sizes[each.name]) for each in clones]

    def with_rows_of(self, people: PlayerFilter) -> list[Clone]:
        """The clones that have rows of these players in any of their versions."""
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
        """The paths in the lakehouse of the files that a shallow clone names, or will: its log may be on its way."""
        places = self._places(table.table)
        if places is None:
            try:
                named = live_paths(open_table(self.store.location, table.source, table.version))
            except DeltaError:
                if self.store.get(entry_path(table.source, table.version)) is not None:
                    raise
                # The clone was given up so long ago that log cleanup has passed its version.
                return iter(())
            return (object_path(self.store.location, table.source, place) for place in named)
        return (object_path(self.store.location, table.table, place) for place in places)

    def _places(self, table: str) -> set[str] | None:
        """All files that a clone's versions name; an analyst may have rewritten some of them. None without a table."""
        try:
            live = set(live_paths(open_table(self.store.location, table)))
        except TableNotFoundError:
            return None
        log = TableLog.read(self.store, table)
        return live | set(log.live) | set(log.removed)


def _note(name: str) -> str:
    return f"{_FOLDER}/{name}.json"
