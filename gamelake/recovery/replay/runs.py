"""The runs that bring rows back: one at a time, and each to its end, whoever comes to it.

A run's number is its lease's token. Of a run that was killed before it settled, the next one settles that it did
nothing, so that a process that only seemed dead can't settle it any more; what it had settled is committed first.
"""

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from gamelake.model.errors import LeaseLostError
from gamelake.model.failpoints import Failpoint, Failpoints
from gamelake.storage.leases import Lease
from gamelake.storage.manifests import TableFiles
from gamelake.storage.replay_manifests import ReplayManifest, ReplayManifests
from gamelake.storage.rewrites import revision_lease
from gamelake.storage.store import Store
from gamelake.storage.tables import DeltaTables

log = logging.getLogger(__name__)

_COMMIT_THREADS = 8


@dataclass(frozen=True, slots=True)
class ReplayRun:
    """The right to bring rows back."""

    manifests: ReplayManifests
    tables: DeltaTables
    failpoints: Failpoints
    lease: Lease

    @property
    def number(self) -> int:
        """Greater than that of every run before."""
        return self.lease.token

    def settle(self, manifest: ReplayManifest) -> None:
        """Write down what was decided, and commit it to every table.

        Raises:
            LeaseLostError: another process has taken over; nothing was committed.
        """
        self.lease.require()
        if not self.manifests.settle(manifest):
            raise LeaseLostError("another process has taken this replay over; this one has committed nothing")
        self.failpoints.reach(Failpoint.AFTER_MANIFEST)
        self.finish(manifest)

    def finish(self, manifest: ReplayManifest) -> None:
        """Commit what was settled; tables that have it already are left alone."""

        def commit(entry: TableFiles) -> None:
            self.tables.append(entry, manifest.transaction)
            self.failpoints.reach(Failpoint.AFTER_TABLE_COMMIT)

        with ThreadPoolExecutor(_COMMIT_THREADS, thread_name_prefix="commit") as pool:
            list(pool.map(commit, manifest.tables))
        self.manifests.is_done(manifest)


@contextmanager
def replay_run(store: Store, tables: DeltaTables, failpoints: Failpoints) -> Iterator[ReplayRun]:
    """Finish what a killed run has settled, then have the right to a run of one's own.

    Raises:
        LeaseHeldError: another process changes which rows the tables have.
    """
    manifests = ReplayManifests(store)
    with revision_lease(store) as lease:
        if lease.took_over:
            manifests.settle(ReplayManifest(number=lease.token - 1))
        run = ReplayRun(manifests, tables, failpoints, lease)
        for manifest in manifests.unfinished():
            log.warning("replay %d was settled before: finishing its commits", manifest.number)
            run.finish(manifest)
        yield run
