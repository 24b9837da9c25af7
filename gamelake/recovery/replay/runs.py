"""Replay runs: one at a time, each completed by its own process or by the next run.

The number of a run is the token of its lease. If a run was killed before it wrote its manifest, the next one writes an
empty manifest in its place, so that a process that only stalled can't commit any more; if it had written its manifest,
the next one commits it first.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from gamelake.model.errors import LeaseLostError
from gamelake.model.failpoints import Failpoint, Failpoints
from gamelake.model.logs import event_logger
from gamelake.storage.leases import Lease
from gamelake.storage.manifests import TableFiles
from gamelake.storage.replay_manifests import ReplayManifest, ReplayManifests
from gamelake.storage.rewrites import revision_lease
from gamelake.storage.store import Store
from gamelake.storage.tables import DeltaTables

log = event_logger(__name__)


@dataclass(frozen=True, slots=True)
class ReplayRun:
    """A replay run: holds the revision lease."""

    manifests: ReplayManifests
    tables: DeltaTables
    failpoints: Failpoints
    lease: Lease

    @property
    def number(self) -> int:
        """The number of the run, greater than that of every earlier run."""
        return self.lease.token

    def settle(self, manifest: ReplayManifest) -> None:
        """Write the manifest, and commit it to every table.

        Raises:
            LeaseLostError: another process has taken over; nothing was committed.
        """
        self.lease.require()
        if not self.manifests.settle(manifest):
            raise LeaseLostError("another process has taken this replay over; this one has committed nothing")
        self.failpoints.reach(Failpoint.AFTER_MANIFEST)
        self.finish(manifest)

    def finish(self, manifest: ReplayManifest) -> None:
        """Commit a manifest to the tables that do not have it yet."""

        def commit(entry: TableFiles) -> None:
            self.tables.append(entry, manifest.transaction)
            self.failpoints.reach(Failpoint.AFTER_TABLE_COMMIT)

        with ThreadPoolExecutor(self.tables.at_once, thread_name_prefix="commit") as pool:
            list(pool.map(commit, manifest.tables))
        self.manifests.is_done(manifest)


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
        run = ReplayRun(manifests, tables, failpoints, lease)
        for manifest in manifests.unfinished():
            log.warning("replay_unfinished", replay=manifest.number, action="commits its manifest")
            run.finish(manifest)
        yield run
