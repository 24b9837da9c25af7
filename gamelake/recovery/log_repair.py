"""Writes the damaged entry of a table's log anew, from the manifest of the batch that it was of.

A manifest says all that its batch's entry says, so that nothing is guessed. What is no batch's entry, such as that of a
compaction, is in no manifest, and is not mended.
Source: Delta Transaction Log Protocol, heading "Delta Log Entries".
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec

from gamelake.model.errors import StartupError
from gamelake.storage.appends import BatchTransaction, append_entry
from gamelake.storage.delta_log import decode_entry, entry_path, entry_versions, transactions_of
from gamelake.storage.generations import Generations
from gamelake.storage.manifests import BatchManifest, Manifests, TableFiles
from gamelake.storage.rewrites import maintenance_lease
from gamelake.storage.store import Store

# A batch that was decided this long ago has been committed by whoever decided it, if they are alive.
_IN_FLIGHT = timedelta(seconds=10)


class RepairError(StartupError):
    """A log can't be mended from the manifests."""


class RepairedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that was written anew, or would be: its version, whose batch it is, and what it adds."""

    table: str
    version: int
    batch: str
    rows: int
    files: int


@dataclass(slots=True)
class _Log:
    """The entries of a table: by version the transactions in them, None where an entry is damaged or missing."""

    transactions: dict[int, frozenset[str] | None]

    @classmethod
    def read(cls, store: Store, table: str) -> "_Log":
        """Read all that is there; a version between two others that is not there is damaged, too."""
        versions = entry_versions(store, table)
        if not versions:
            raise RepairError(f"there is no table {table}")
        every = range(min(versions), max(versions) + 1)
        return cls({version: _transactions(store.get(entry_path(table, version))) for version in every})

    @property
    def damaged(self) -> list[int]:
        """The versions whose entries can't be read."""
        return [version for version, found in self.transactions.items() if found is None]

    @property
    def known(self) -> frozenset[str]:
        """All transactions of the entries that can be read."""
        return frozenset().union(*(found for found in self.transactions.values() if found is not None))

    def around(self, apps: Set[str]) -> tuple[float, float]:
        """Of a stream's applications, the last batch before what is damaged and the first one after it."""
        first, last = self.damaged[0], self.damaged[-1]
        before = _batches(apps, (found for version, found in self.transactions.items() if version < first))
        after = _batches(apps, (found for version, found in self.transactions.items() if version > last))
        # Nothing before it: the log was cleaned up, or the stream is new to the table; what came then is settled.
        return max(before, default=math.inf), min(after, default=math.inf)


@dataclass(frozen=True, slots=True)
class LogRepair:
    """One table whose log is damaged."""

    store: Store
    table: str

    def dry_run(self) -> list[RepairedEntry]:
        """What would be written.

        Raises:
            RepairError: an entry was of no batch, or nobody can say of which.
        """
        return [self._told(version, manifest) for version, manifest in self._found()]

    def repair(self, wait: Callable[[float], None] = time.sleep) -> list[RepairedEntry]:
        """Write each damaged entry anew, once its batch is no longer being committed.

        Raises:
            RepairError: see `dry_run`.
        """
        with maintenance_lease(self.store, self.table):
            for _, manifest in self._found():
                age = datetime.now(UTC) - datetime.fromisoformat(manifest.written_at)
                wait(max((_IN_FLIGHT - age).total_seconds(), 0))
            # Looked at again: what was being committed is there now, and was not what is missing.
            found = self._found()
            for version, manifest in found:
                content = append_entry(self._entry(manifest), BatchTransaction.of(manifest))
                self.store.put(entry_path(self.table, version), content)
        return [self._told(version, manifest) for version, manifest in found]

    def _found(self) -> list[tuple[int, BatchManifest]]:
        """The damaged versions, and the manifests of the batches that they are of."""
        log = _Log.read(self.store, self.table)
        missing = list(self._missing(log))
        if len(missing) < len(log.damaged):
            raise RepairError(
                f"{self.table}: {len(log.damaged)} entries are damaged, the first of version {log.damaged[0]}, and "
                f"{len(missing)} batches are missing: an entry that was of no batch stands in no manifest. Take it "
                "from a copy of the object store, or make the table again with jobs/backfill.py"
            )
        # Versions and batches grow together; what is missing beyond the damaged ones is still being committed.
        return list(zip(log.damaged, missing, strict=False))

    def _missing(self, log: _Log) -> Iterator[BatchManifest]:
        """The batches that have rows for the table and are in no entry, oldest first; only around what is damaged."""
        if not log.damaged:
            return
        if log.damaged[0] == min(log.transactions):
            raise RepairError(f"{self.table}: its first entry is damaged, which says more than a batch does")
        for stream in (folder.rstrip("/").rsplit("/", 1)[-1] for folder in self.store.folders("_gamelake/streams")):
            apps = {generation.app_id for generation in Generations(self.store, stream).all()}
            manifests, (after, before) = Manifests(self.store, stream), log.around(apps)
            for batch_id in (each for each in manifests.batches() if after < each < before):
                manifest = manifests.read(batch_id)
                if manifest is not None and manifest.rows_in(self.table) and _name(manifest) not in log.known:
                    yield manifest

    def _entry(self, manifest: BatchManifest) -> TableFiles:
        (entry,) = (each for each in manifest.tables if each.table == self.table)
        return entry

    def _told(self, version: int, manifest: BatchManifest) -> RepairedEntry:
        entry = self._entry(manifest)
        return RepairedEntry(
            table=self.table, version=version, batch=_name(manifest), rows=entry.rows, files=len(entry.files)
        )


def _transactions(entry: bytes | None) -> frozenset[str] | None:
    try:
        actions = decode_entry(entry or b"")
        found = transactions_of(actions)
    except (ValueError, TypeError):
        return None
    return frozenset(found) if actions else None


def _name(manifest: BatchManifest) -> str:
    return f"{manifest.app_id}/{manifest.batch_id}"


def _batches(apps: Set[str], entries: Iterable[frozenset[str] | None]) -> list[int]:
    named = (transaction.rpartition("/") for found in entries for transaction in found or ())
    return [int(batch) for app, _, batch in named if app in apps]
