"""Deletes files that no version of a table within the retention needs: replaced files, and orphans of killed batches.

A file is kept if the newest version has it, if it was replaced or written within the retention, or if the manifest of
a batch names it that may not be committed yet.
Source: Delta Transaction Log Protocol, headings "Add File and Remove File" (tombstones) and "Delta Log Entries".
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice

import msgspec

from gamelake.model.errors import StartupError
from gamelake.storage.clones import Clones
from gamelake.storage.delta_log import LOG_FOLDER, live_paths
from gamelake.storage.held_tables import waiting_files
from gamelake.storage.leases import Lease
from gamelake.storage.listing import stream_names
from gamelake.storage.manifests import Manifests
from gamelake.storage.replay_manifests import ReplayManifests
from gamelake.storage.rewrites import maintenance_lease
from gamelake.storage.store import Store, StoredObject
from gamelake.storage.table_log import removal_times
from gamelake.storage.tables import open_table
from gamelake.storage.vacuum_marks import begin_vacuum, end_vacuum

_BLOCK = 20_000
_DELETES_PER_CHECK = 100


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

    @property
    def files(self) -> int:
        """How many files are deleted, or would be."""
        return self.replaced_files + self.orphaned_files


@dataclass(frozen=True, slots=True)
class UnreferencedFile:
    """A file that its table no longer needs; whether a commit ever named it, and whether a clone references it."""

    file: StoredObject
    was_named: bool
    is_cloned: bool = False


def undecided_files(store: Store) -> dict[str, frozenset[str]]:
    """By table, files that may be in no log yet: of the newest batches, of unfinished replays, of tables held back."""
    entries = [
        entry for stream in stream_names(store) for each in Manifests(store, stream).last(2) for entry in each.tables
    ]
    entries += [entry for each in ReplayManifests(store).unfinished() for entry in each.tables]
    entries += [waiting.entry for waiting in waiting_files(store)]
    found: defaultdict[str, set[str]] = defaultdict(set)
    for entry in entries:
        found[entry.table].update(file.path for file in entry.files)
    return {table: frozenset(paths) for table, paths in found.items()}


@dataclass(frozen=True, slots=True)
class TableVacuum:
    """The vacuum of one table; versions since `since` are kept.

    Memory grows with the live files, not with the objects of the table or its history: candidates are taken in blocks,
    and for each block the log is read as a stream.

    Attributes:
        undecided: see `undecided_files`; None: read for this table.
        block: how many candidates are taken at a time.
    """

    store: Store
    table: str
    since: datetime
    undecided: Mapping[str, frozenset[str]] | None = None
    block: int = _BLOCK

    def plan(self) -> Vacuumed:
        """What `delete` would delete now."""
        return self._sum(self._with_clones(files) for files in self.unreferenced())

    def run(self) -> Vacuumed:
        """Take the table's lease, and delete.

        Raises:
            LeaseHeldError: another process holds the lease.
            LeaseLostError: see `delete`.
        """
        with maintenance_lease(self.store, self.table) as lease:
            return self.delete(lease)

    def delete(self, lease: Lease) -> Vacuumed:
        """Decide what the table no longer needs, and delete what no clone references.

        A restore may have brought files back since a plan was made: so this decides again, and checks the lease, which
        a restore takes too, for each hundred files. A delete may still reach the store after another process has taken
        the lease over. So a mark says that deletes may be under way, from before the decision until all are done: a
        restore then brings back copies of the files.

        Raises:
            LeaseLostError: another process has taken the lease over; the files of earlier blocks are deleted.
        """
        begin_vacuum(self.store, self.table, lease)
        deleted = self._sum(self._deleted(files, lease) for files in self.unreferenced())
        end_vacuum(self.store, self.table, lease)
        return deleted

    def unreferenced(self) -> Iterator[list[UnreferencedFile]]:
        """The files that the table no longer needs, in blocks; clones are not considered."""
        # List the files first, then read what references them: a file that is committed in between is too young.
        files = self._old_files()
        while block := list(islice(files, self.block)):
            yield self._unreferenced_of(block)

    def _unreferenced_of(self, files: Sequence[StoredObject]) -> list[UnreferencedFile]:
        candidates = {self._path(each): each for each in files}
        undecided = self.undecided if self.undecided is not None else undecided_files(self.store)
        for path in undecided.get(self.table, ()):
            candidates.pop(path, None)
        removed = removal_times(self.store, self.table, candidates)
        for path in live_paths(open_table(self.store.location, self.table)):
            candidates.pop(path, None)
        before = self.since.timestamp() * 1000
        return [
            UnreferencedFile(file, was_named=path in removed)
            for path, file in candidates.items()
            # An orphan is old enough, as its file is.
            if removed.get(path, -1) < before
        ]

    def _old_files(self) -> Iterator[StoredObject]:
        """Objects that are no entries; one that was written since `since` was needed since then, or may be yet."""
        # Deletion vectors and change files are other programs', and theirs to vacuum.
        others = tuple(f"{self.table}/{name}" for name in (f"{LOG_FOLDER}/", "_change_data/"))
        there = (each for each in self.store.objects(self.table) if not each.path.startswith(others))
        return (each for each in there if each.written_at < self.since and not _is_deletion_vector(each.path))

    def _deleted(self, files: Sequence[UnreferencedFile], lease: Lease) -> list[UnreferencedFile]:
        found = self._with_clones(files)
        going = [each.file.path for each in found if not each.is_cloned]
        for start in range(0, len(going), _DELETES_PER_CHECK):
            lease.require()
            self.store.delete_all(going[start : start + _DELETES_PER_CHECK])
        return found

    def _with_clones(self, files: Sequence[UnreferencedFile]) -> list[UnreferencedFile]:
        cloned = Clones(self.store).named_files(self.table) if files else {}
        return [replace(each, is_cloned=self._path(each.file) in cloned) for each in files]

    def _sum(self, blocks: Iterable[Sequence[UnreferencedFile]]) -> Vacuumed:
        result = Vacuumed(table=self.table, kept_since=self.since)
        for files in blocks:
            going = [each for each in files if not each.is_cloned]
            result = msgspec.structs.replace(
                result,
                replaced_files=result.replaced_files + sum(each.was_named for each in going),
                orphaned_files=result.orphaned_files + sum(not each.was_named for each in going),
                bytes=result.bytes + sum(each.file.size for each in going),
                kept_for_clones=result.kept_for_clones + len(files) - len(going),
            )
        return result

    def _path(self, file: StoredObject) -> str:
        return file.path.removeprefix(f"{self.table}/")


def _is_deletion_vector(path: str) -> bool:
    """Whether a file has deletion vectors, by its name.

    Source: Delta Transaction Log Protocol, heading "Deletion Vector Descriptor Schema".
    """
    name = path.rsplit("/", 1)[-1]
    return name.startswith("deletion_vector_") and name.endswith(".bin")
