"""Repairs the log of a table: rebuilds damaged entries from the manifests of their batches.

A manifest contains everything that a batch's entry contains. An entry without a batch, such as a compaction's, can't be
rebuilt.
Source: Delta Transaction Log Protocol, heading "Delta Log Entries".
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec

from gamelake.delta.appends import append_actions
from gamelake.delta.listing import stream_names
from gamelake.delta.log.codec import (
    decode_entry,
    encode_entry,
    entry_path,
    entry_versions,
    transactions_of,
)
from gamelake.delta.rewrites import maintenance_lease
from gamelake.delta.table_files import TableFiles
from gamelake.ledger.generations import Generations
from gamelake.ledger.manifests import BatchManifest, Manifests
from gamelake.model.clocks import TOLERATED_SKEW
from gamelake.model.errors import StartupError
from gamelake.objects.store import Store

# A live stream has committed every batch that was decided this long ago.
_IN_FLIGHT = timedelta(seconds=10)


class RepairError(StartupError):
    """A log can't be repaired from the manifests."""


class RepairedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A log entry that was rebuilt, or would be in a dry run.

    Attributes:
        table: path of the table.
        version: version of the entry.
        batch: the batch that it commits, as `application/batch`.
        rows: number of rows that it adds.
        files: number of files that it adds.
    """

    table: str
    version: int
    batch: str
    rows: int
    files: int


@dataclass(slots=True)
class _Log:
    """The log entries of a table.

    Attributes:
        transactions: by version, the transactions of the entry; None if the entry is damaged or missing.
    """

    transactions: dict[int, frozenset[str] | None]

    @classmethod
    def read(cls, store: Store, table: str) -> "_Log":
        """Read all entries; a version that is missing between two others counts as damaged."""
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
        """Find the last batch of a stream's applications before the damaged entries, and the first one after them."""
        first, last = self.damaged[0], self.damaged[-1]
        before = _batches(apps, (found for version, found in self.transactions.items() if version < first))
        after = _batches(apps, (found for version, found in self.transactions.items() if version > last))
        # Without a batch before, the log was cleaned up or the stream is new to the table: none of its batches is lost.
        return max(before, default=math.inf), min(after, default=math.inf)


@dataclass(frozen=True, slots=True)
class LogRepair:
    """Repairs the log of one table."""

    store: Store
    table: str

    def dry_run(self) -> list[RepairedEntry]:
        """Return the entries that `repair` would write.

        Raises:
            RepairError: an entry has no batch, or its batch is unknown.
        """
        return [self._repaired(version, manifest) for version, manifest in self._found()]

    def repair(self, wait: Callable[[float], None] = time.sleep) -> list[RepairedEntry]:
        """Rebuild each damaged entry, once its batch is no longer being committed.

        Raises:
            RepairError: see `dry_run`.
        """
        with maintenance_lease(self.store, self.table):
            decided = [datetime.fromisoformat(manifest.written_at) for _, manifest in self._found()]
            # Another machine's clock wrote the time of a manifest.
            if decided and datetime.now(UTC) - max(decided) < _IN_FLIGHT + TOLERATED_SKEW:
                wait(_IN_FLIGHT.total_seconds())
            # Read again: batches that were being committed are in the log by now, and are no longer missing.
            found = self._found()
            for version, manifest in found:
                content = encode_entry(append_actions(self._entry(manifest), manifest.transaction))
                self.store.put(entry_path(self.table, version), content)
            return [self._repaired(version, manifest) for version, manifest in found]

    def _found(self) -> list[tuple[int, BatchManifest]]:
        """Find the damaged versions and the manifests of their batches, oldest first."""
        log = _Log.read(self.store, self.table)
        missing = list(self._missing(log))
        if len(missing) < len(log.damaged):
            raise RepairError(
                f"{self.table}: {len(log.damaged)} entries are damaged, the first of version {log.damaged[0]}, and "
                f"{len(missing)} batches are missing: an entry without a batch has no manifest. Copy it from "
                "a backup of the object store, or rebuild the table with jobs/backfill.py"
            )
        # Versions and batches are in the same order; further missing batches are still being committed.
        return list(zip(log.damaged, missing, strict=False))

    def _missing(self, log: _Log) -> Iterator[BatchManifest]:
        """Yield the manifests of batches that have rows for the table but no entry, oldest first."""
        if not log.damaged:
            return
        if log.damaged[0] == min(log.transactions):
            raise RepairError(
                f"{self.table}: its first entry is damaged and can't be rebuilt, since no manifest has the table's "
                "metadata. Copy it from a backup of the object store"
            )
        for stream in stream_names(self.store):
            apps = {generation.app_id for generation in Generations(self.store, stream).all()}
            manifests, (after, before) = Manifests(self.store, stream), log.around(apps)
            for batch_id in (each for each in manifests.batches() if after < each < before):
                manifest = manifests.read(batch_id)
                if manifest is not None and manifest.rows_in(self.table) and _name(manifest) not in log.known:
                    yield manifest

    def _entry(self, manifest: BatchManifest) -> TableFiles:
        (entry,) = (each for each in manifest.tables if each.table == self.table)
        return entry

    def _repaired(self, version: int, manifest: BatchManifest) -> RepairedEntry:
        entry = self._entry(manifest)
        return RepairedEntry(
            table=self.table, version=version, batch=_name(manifest), rows=entry.rows, files=len(entry.files)
        )


def _transactions(entry: bytes | None) -> frozenset[str] | None:
    try:
        return frozenset(transactions_of(decode_entry(entry or b"")))
    except (ValueError, TypeError):
        return None


def _name(manifest: BatchManifest) -> str:
    return f"{manifest.app_id}/{manifest.batch_id}"


def _batches(apps: Set[str], entries: Iterable[frozenset[str] | None]) -> list[int]:
    named = (transaction.rpartition("/") for found in entries for transaction in found or ())
    return [int(batch) for app, _, batch in named if app in apps]
