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

from gamelake.delta.rewrites import revision_lease
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import DeltaTables
from gamelake.ledger.replay_manifests import ReplayManifest, ReplayManifests
from gamelake.ledger.replay_notices import ReplayNotices
from gamelake.model.errors import LeaseLostError
from gamelake.model.failpoints import Failpoint, Failpoints
from gamelake.model.logs import event_logger
from gamelake.objects.leases import Lease
from gamelake.privacy.erasure_records import ErasureRecords
from gamelake.privacy.row_eraser import RowEraser
from gamelake.recovery.replay.late_batches import LateBatches
from gamelake.scans.player_rows import PlayerFilter, player_table

log = event_logger(__name__)


@dataclass(frozen=True, slots=True)
class ReplayRun:
    """A replay run, which holds the revision lease.

    Attributes:
        manifests: the manifests of all replays.
        tables: commits to the tables.
        failpoints: where tests kill the process.
        lease: the revision lease.
    """

    manifests: ReplayManifests
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
        ReplayNotices(self.tables.store).put(manifest.number, manifest.events, until)
        self.failpoints.reach(Failpoint.AFTER_REPLAY_NOTICE)
        late = LateBatches(self.tables)
        late.wait()
        if (rest := late.left_out_of(manifest)) != manifest:
            self.lease.require()
            self.manifests.replace(rest)
            manifest = rest

        def commit(entry: TableFiles) -> None:
            self.tables.append(entry, manifest.transaction)
            self.failpoints.reach(Failpoint.AFTER_TABLE_COMMIT)

        with ThreadPoolExecutor(self.tables.at_once, thread_name_prefix="commit") as pool:
            list(pool.map(commit, manifest.tables))
        self.manifests.mark_done(manifest)
        return manifest


@contextmanager
def replay_run(tables: DeltaTables, failpoints: Failpoints) -> Iterator[ReplayRun]:
    """Take the revision lease, finish the manifests of killed runs, and start a new run.

    Raises:
        LeaseHeldError: another process holds the revision lease.
    """
    manifests = ReplayManifests(tables.store)
    with revision_lease(tables.store) as lease:
        if lease.took_over:
            manifests.settle(ReplayManifest(number=lease.token - 1))
        run = ReplayRun(manifests, tables, failpoints, lease)
        for manifest in manifests.unfinished():
            log.warning("replay_unfinished", replay=manifest.number, action="commits its manifest")
            run.finish(manifest)
            # Players may have been erased after the manifest was decided.
            players = PlayerFilter(ErasureRecords(tables.store).erased_pseudonyms())
            for entry in manifest.tables if players.pseudonyms else ():
                if (table := player_table(tables.store, entry.table)) is not None:
                    RowEraser(tables.store, table, players, f"after-replay-{manifest.number}").erase()
        yield run
