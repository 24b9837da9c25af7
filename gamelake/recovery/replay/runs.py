"""Replay runs: one at a time, each completed by its own process or by the next run.

The number of a run is the token of its lease. If a run was killed before it wrote its manifest, the next run writes an
empty manifest in its place, so that a process that only stalled can no longer commit. If the manifest exists, the next
run commits it first, and deletes the rows of players who were erased since.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from gamelake.delta.rewrites import revision_lease
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import DeltaTables
from gamelake.ledger.replay_manifests import ReplayManifest, ReplayManifests
from gamelake.ledger.replay_notices import ReplayNotices
from gamelake.model.errors import LeaseLostError
from gamelake.model.failpoints import Failpoint, Failpoints
from gamelake.model.logs import event_logger
from gamelake.objects.leases import Lease
from gamelake.objects.store import Store
from gamelake.privacy.erasure_records import ErasureRecords
from gamelake.privacy.row_eraser import RowEraser
from gamelake.recovery.replay.late_batches import await_begun_batches, without_late_events
from gamelake.scans.player_rows import PlayerFilter, player_table

log = event_logger(__name__)


@dataclass(frozen=True, slots=True)
class ReplayRun:
    """A replay run, which holds the revision lease.

    Attributes:
        manifests: the manifests of all replays.
        notices: the notices of replays, which streams read.
        tables: commits to the tables.
        failpoints: where tests kill the process.
        lease: the revision lease.
    """

    manifests: ReplayManifests
    notices: ReplayNotices
    tables: DeltaTables
    failpoints: Failpoints
    lease: Lease

    @property
    def number(self) -> int:
        """The number of the run, greater than that of every earlier run."""
        return self.lease.token

    def settle(self, manifest: ReplayManifest) -> ReplayManifest:
        """Write the manifest, commit it to every table, and return the manifest of the committed rows.

        Raises:
            LeaseLostError: another process has taken over; nothing was committed.
            TransientError: a batch has begun but is not completed; the next run commits the manifest.
        """
        self.lease.require()
        if not self.manifests.settle(manifest):
            raise LeaseLostError("another process has taken this replay over; this one has committed nothing")
        self.failpoints.reach(Failpoint.AFTER_MANIFEST)
        return self.finish(manifest)

    def finish(self, manifest: ReplayManifest) -> ReplayManifest:
        """Commit a manifest to tables that do not have it yet, without events that batches have written since.

        Batches that begin after the notice do not write these events.

        Raises:
            TransientError: a batch has begun but is not completed; the next run commits the manifest.
        """
        until = int(time.time()) + manifest.remembered
        self.notices.put(manifest.number, manifest.events, until)
        self.failpoints.reach(Failpoint.AFTER_REPLAY_NOTICE)
        await_begun_batches(self.notices.store)
        manifest = self._without_late_events(manifest)

        def commit(entry: TableFiles) -> None:
            self.tables.append(entry, manifest.transaction)
            self.failpoints.reach(Failpoint.AFTER_TABLE_COMMIT)

        with ThreadPoolExecutor(self.tables.at_once, thread_name_prefix="commit") as pool:
            list(pool.map(commit, manifest.tables))
        self.manifests.mark_done(manifest)
        return manifest

    def _without_late_events(self, manifest: ReplayManifest) -> ReplayManifest:
        tables = without_late_events(self.notices.store, self.tables, manifest)
        if tables == manifest.tables:
            return manifest
        self.lease.require()
        rest = msgspec.structs.replace(manifest, tables=tables)
        self.manifests.replace(rest)
        return rest


@contextmanager
def replay_run(store: Store, tables: DeltaTables, failpoints: Failpoints) -> Iterator[ReplayRun]:
    """Take the revision lease, finish the manifests of killed runs, and start a new run.

    Raises:
        LeaseHeldError: another process holds the revision lease.
    """
    manifests = ReplayManifests(store)
    with revision_lease(store) as lease:
        if lease.took_over:
            manifests.settle(ReplayManifest(number=lease.token - 1))
        run = ReplayRun(manifests, ReplayNotices(store), tables, failpoints, lease)
        for manifest in manifests.unfinished():
            log.warning("replay_unfinished", replay=manifest.number, action="commits its manifest")
            run.finish(manifest)
            _erase_again(store, manifest)
        yield run


def _erase_again(store: Store, manifest: ReplayManifest) -> None:
    """Delete the rows of players who were erased after the manifest was decided."""
    players = PlayerFilter(ErasureRecords(store).erased_pseudonyms())
    for entry in manifest.tables:
        table = player_table(store, entry.table)
        if table is not None and players.pseudonyms:
            RowEraser(store, table, players, f"after-replay-{manifest.number}").erase()
