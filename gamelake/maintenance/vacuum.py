"""Deletes files that no version of a table within the retention needs: replaced files, and orphans of killed batches.

A file is kept if the newest version has it, if it was replaced or written within the retention, or if the manifest of
a batch names it that may not be committed yet.
Source: Delta Transaction Log Protocol, headings "Add File and Remove File" (tombstones) and "Delta Log Entries".
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from urllib.parse import unquote

import msgspec

from gamelake.model.errors import StartupError
from gamelake.storage.clones import Clones
from gamelake.storage.delta_log import LOG_FOLDER, live_files
from gamelake.storage.manifests import Manifests
from gamelake.storage.replay_manifests import ReplayManifests
from gamelake.storage.store import Store, StoredObject
from gamelake.storage.table_log import TableLog
from gamelake.storage.tables import open_table


class RetentionError(StartupError):
    """With this retention vacuum would delete files that a reader still needs."""


@dataclass(frozen=True, slots=True)
class TableReader:
    """A reader that may need the versions of a table that were current at some moment since `since`."""

    name: str
    since: datetime


def require_retention(table: str, since: datetime, readers: Iterable[TableReader]) -> None:
    """Check that a retention keeps what all readers need.

    Raises:
        RetentionError: it does not; the message names the reader and the remedy.
    """
    for reader in readers:
        if reader.since < since:
            raise RetentionError(
                f"{table}: {reader.name} needs its versions since {reader.since:%Y-%m-%d %H:%M}, and the retention "
                f"keeps those since {since:%Y-%m-%d %H:%M}. Keep more, or use --force {table} if it needs them no more"
            )


class Vacuumed(msgspec.Struct, frozen=True, kw_only=True):
    """What was deleted of a table, or would be: files that a commit replaced, and files that no commit names.

    `kept_for_clones` counts files that stay only because a clone references them.
    """

    table: str
    replaced_files: int = 0
    orphaned_files: int = 0
    bytes: int = 0
    kept_for_clones: int = 0
    kept_since: datetime


@dataclass(frozen=True, slots=True)
class UnreferencedFile:
    """A file that its table no longer needs; whether a commit ever named it, and whether a clone references it."""

    file: StoredObject
    was_named: bool
    is_cloned: bool = False


@dataclass(frozen=True, slots=True)
class TableVacuum:
    """The vacuum of one table; versions since `since` are kept."""

    store: Store
    table: str
    since: datetime

    def unreferenced(self) -> list[UnreferencedFile]:
        """The files that the table no longer needs."""
        # List the files first, then read what references them: a file that is committed in between is too young.
        there = list(self._data_files())
        log, undecided = TableLog.read(self.store, self.table), self._undecided()
        needed = self._live() | undecided
        unneeded = [each for each in there if self._path(each) not in needed]
        cloned = Clones(self.store).named_files(self.table)
        found = [UnreferencedFile(x, self._path(x) in log.removed, self._path(x) in cloned) for x in unneeded]
        return [each for each in found if self._unneeded_since(each, log) < self.since.timestamp()]

    def delete(self, files: Sequence[UnreferencedFile]) -> Vacuumed:
        """Delete the files that no clone references, new clones included; the caller must hold the table's lease."""
        cloned = Clones(self.store).named_files(self.table)
        files = [replace(each, is_cloned=self._path(each.file) in cloned) for each in files]
        for each in files:
            if not each.is_cloned:
                self.store.delete(each.file.path)
        return self.account(files)

    def account(self, files: Sequence[UnreferencedFile]) -> Vacuumed:
        """The result of deleting these files."""
        going = [each for each in files if not each.is_cloned]
        return Vacuumed(
            table=self.table,
            replaced_files=sum(each.was_named for each in going),
            orphaned_files=sum(not each.was_named for each in going),
            bytes=sum(each.file.size for each in going),
            kept_for_clones=len(files) - len(going),
            kept_since=self.since,
        )

    def _data_files(self) -> Iterator[StoredObject]:
        # Deletion vectors and change files are other programs', and theirs to vacuum.
        others = tuple(f"{self.table}/{name}" for name in (f"{LOG_FOLDER}/", "_change_data/"))
        there = (each for each in self.store.objects(self.table) if not each.path.startswith(others))
        return (each for each in there if not _is_deletion_vector(each.path))

    def _unneeded_since(self, found: UnreferencedFile, log: TableLog) -> float:
        """Since when the table does not need a file (seconds since 1970); an orphan, since it was written."""
        if found.was_named:
            return log.removed[self._path(found.file)] / 1000
        return found.file.written_at.timestamp()

    def _path(self, file: StoredObject) -> str:
        return file.path.removeprefix(f"{self.table}/")

    def _live(self) -> set[str]:
        return {file.relative_path for file in live_files(open_table(self.store.location, self.table))}

    def _undecided(self) -> set[str]:
        """Files of the newest batches of all streams, and of unfinished replays: they may be in no log yet."""
        streams = [folder.rstrip("/").rsplit("/", 1)[-1] for folder in self.store.folders("_gamelake/streams")]
        manifests = [each for stream in streams for each in Manifests(self.store, stream).last(2)]
        decided = [entry for each in manifests for entry in each.tables]
        decided += [entry for each in ReplayManifests(self.store).unfinished() for entry in each.tables]
        return {unquote(file.path) for entry in decided if entry.table == self.table for file in entry.files}


def _is_deletion_vector(path: str) -> bool:
    """Whether a file has deletion vectors, by its name.

    Source: Delta Transaction Log Protocol, heading "Deletion Vector Descriptor Schema".
    """
    name = path.rsplit("/", 1)[-1]
    return name.startswith("deletion_vector_") and name.endswith(".bin")
