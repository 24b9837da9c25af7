"""Deletes files that no version of a table within the retention needs: replaced files, and orphans of killed batches.

A file is kept if the newest version contains it, if it was replaced or written within the retention, or if it is in the
manifest of a batch that may not be committed yet.
Source: Delta Transaction Log Protocol, headings "Add File and Remove File" (tombstones) and "Delta Log Entries".
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice

import msgspec

from gamelake.delta.listing import stream_names
from gamelake.delta.log.codec import LOG_FOLDER, live_paths
from gamelake.delta.log.table_log import removal_times
from gamelake.delta.rewrites import maintenance_lease
from gamelake.delta.tables import open_table
from gamelake.ledger.clones import Clones
from gamelake.ledger.held_tables import waiting_files
from gamelake.ledger.manifests import Manifests
from gamelake.ledger.replay_manifests import ReplayManifests
from gamelake.model.errors import StartupError
from gamelake.objects.leases import Lease
from gamelake.objects.store import Store, StoredObject
from gamelake.objects.vacuum_marks import begin_vacuum, end_vacuum

_BLOCK = 20_000
_DELETES_PER_CHECK = 100


class RetentionError(StartupError):
    """Vacuum with this retention would delete files that a reader still needs."""


@dataclass(frozen=True, slots=True)
class TableReader:
    """A reader of older versions of a table.

    Attributes:
        name: name of the reader, for messages.
        since: the reader needs the version that was current at this moment, and all later ones.
    """

    name: str
    since: datetime


def require_retention(table: str, since: datetime, readers: Iterable[TableReader]) -> None:
    """Check that a retention keeps all versions that readers need.

    Raises:
        RetentionError: a reader needs older versions; the message names the reader and the remedy.
    """
    for reader in readers:
        if reader.since < since:
            raise RetentionError(
                f"{table}: {reader.name} needs its versions since {reader.since:%Y-%m-%d %H:%M}, and the retention "
                f"keeps those since {since:%Y-%m-%d %H:%M}. Keep more, or use --force {table} if it needs none of them"
            )


class Vacuumed(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the vacuum of a table, or of its dry run.

    Attributes:
        table: path of the table.
        replaced_files: number of deleted files that a commit had replaced.
        orphaned_files: number of deleted files that no commit names.
        bytes: size of the deleted files.
        kept_for_clones: number of files that are kept only because a clone references them.
        kept_since: versions since this moment are kept.
    """

    table: str
    replaced_files: int = 0
    orphaned_files: int = 0
    bytes: int = 0
    kept_for_clones: int = 0
    kept_since: datetime

    @property
    def files(self) -> int:
        """The number of deleted files."""
        return self.replaced_files + self.orphaned_files


@dataclass(frozen=True, slots=True)
class UnreferencedFile:
    """A file that its table no longer needs.

    Attributes:
        file: the file.
        was_named: True if a commit ever named it.
        is_cloned: True if a clone references it.
    """

    file: StoredObject
    was_named: bool
    is_cloned: bool = False


def undecided_files(store: Store) -> dict[str, frozenset[str]]:
    """Return by table the files that may not be in its log yet: of the newest batches, replays and tables held back."""
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
    """The vacuum of one table.

    Memory grows with the number of live files, not of all objects or log entries: the vacuum checks candidates in
    blocks, and streams the log for each block.

    Attributes:
        store: the store of the lakehouse.
        table: path of the table.
        since: versions since this moment are kept.
        undecided: the result of `undecided_files`; None to read it for each block.
        block: number of candidates in a block.
    """

    store: Store
    table: str
    since: datetime
    undecided: Mapping[str, frozenset[str]] | None = None
    block: int = _BLOCK

    def plan(self) -> Vacuumed:
        """Return what `delete` would delete now; write nothing."""
        return self._sum(self._with_clones(files) for files in self.unreferenced())

    def run(self) -> Vacuumed:
        """Take the table's maintenance lease, and delete; see `delete`.

        Raises:
            LeaseHeldError: another process holds the lease.
            LeaseLostError: another process has taken over the lease; the files of earlier blocks are deleted.
        """
        with maintenance_lease(self.store, self.table) as lease:
            return self.delete(lease)

    def delete(self, lease: Lease) -> Vacuumed:
        """Decide again which files the table no longer needs, and delete those that no clone references.

        A restore may have added files again since a plan was made, so this method does not use a plan. For each hundred
        files it checks the lease, which a restore takes too. A delete may still reach the store after another process
        has taken over the lease. Therefore a mark is set from before the decision until all deletes are done; while it
        is set, restores copy the files.

        Args:
            lease: the maintenance lease of the table, which the caller holds.

        Raises:
            LeaseLostError: another process has taken over the lease; the files of earlier blocks are deleted.
        """
        begin_vacuum(self.store, self.table, lease)
        deleted = self._sum(self._deleted(files, lease) for files in self.unreferenced())
        end_vacuum(self.store, self.table, lease)
        return deleted

    def unreferenced(self) -> Iterator[list[UnreferencedFile]]:
        """Yield the files that the table no longer needs, in blocks; `is_cloned` is not set."""
        # List the files first, then read their references: a file that is committed in between is too young.
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
            # An orphan is old enough, because its file is.
            if removed.get(path, -1) < before
        ]

    def _old_files(self) -> Iterator[StoredObject]:
        """Yield the objects outside the log that were written before `since`; younger ones may still be needed."""
        # Other programs write deletion vectors and change files, and must vacuum them.
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
    """Return True if a file contains deletion vectors, judged by its name.

    Source: Delta Transaction Log Protocol, heading "Deletion Vector Descriptor Schema".
    """
    name = path.rsplit("/", 1)[-1]
    return name.startswith("deletion_vector_") and name.endswith(".bin")
