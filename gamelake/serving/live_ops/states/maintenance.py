"""The state that the driver keeps from batch to batch: the files of players' states, and when to refresh the table.

It has names of files, not players' states, so it stays small however many players there are.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import numpy as np
from obstore.exceptions import BaseError

from gamelake.ledger.manifests import BatchManifest, EventsFile, Manifests
from gamelake.model.arrays import Words
from gamelake.model.clocks import SteadyClock
from gamelake.model.logs import event_logger
from gamelake.objects.store import Store
from gamelake.privacy.erasure_records import ErasureRecords
from gamelake.serving.live_ops.plan import Base, StatePlan
from gamelake.serving.live_ops.signals.watching import Watching
from gamelake.serving.live_ops.states.refreshing import Refresher, intervals_to_wait
from gamelake.serving.live_ops.states.state_files import batch_of, read_table
from gamelake.serving.live_ops.states.updating import keys_of_players

_POLL_SECONDS = 5.0


@dataclass(slots=True)
class ErasedPlayers:
    """The erased players of some games, from the erasure records, which are read every few seconds.

    After a start, all of them count as new: the topic gets the same tombstones again, which changes nothing.

    Attributes:
        store: the lakehouse.
        games: the games of the contract.
        seed: the seed of the stream's player keys.
    """

    store: Store
    games: tuple[str, ...]
    seed: str
    _seen: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    _published: set[str] = field(default_factory=set)
    _keys: Words = field(default_factory=lambda: np.zeros(0, np.uint64))
    _polled_at: float = float("-inf")

    def poll(self) -> None:
        """Read the erasures requested since the last poll, if that was at least five seconds ago."""
        if time.monotonic() - self._polled_at < _POLL_SECONDS:
            return
        self.poll_now()

    def poll_now(self) -> None:
        """Read the erasures requested since the last poll."""
        for run, players in ErasureRecords(self.store).requested_since(frozenset(self._seen)).items():
            # A sweep names no game.
            self._seen[run] = tuple(
                (game, pseudonym)
                for pseudonym in players.pseudonyms
                for game in ([players.game] if players.game else self.games)
            )
            self._keys = np.concatenate([self._keys, keys_of_players(self._seen[run], self.seed)[2]])
        self._polled_at = time.monotonic()

    @property
    def keys(self) -> bytes:
        """The keys of all erased players: uint64 in the machine's byte order."""
        return self._keys.tobytes()

    def unpublished(self) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
        """Return the erasure runs without tombstones in the topic, and their players (game and pseudonym)."""
        runs = tuple(run for run in self._seen if run not in self._published)
        return runs, tuple(player for run in runs for player in self._seen[run])

    def published(self, runs: tuple[str, ...]) -> None:
        """Record that the topic has the tombstones of these runs."""
        self._published.update(runs)


log = event_logger(__name__)


@dataclass(slots=True)
class StateKeeper:
    """The state of a live-ops stream from batch to batch.

    The driver calls `resume` once, then for each batch `plan` and, after all tables have the batch, `took`. One thread
    calls it.

    Attributes:
        store: the lakehouse.
        folder: the folder of the stream's state files.
        seed: the seed of the stream's player keys.
        shares: the number of shares of the players, one for each task.
        every: the shortest time between two refreshes of the table.
        watching: counts and judges minutes.
        forgotten: the erased players.
        refresher: refreshes the table of players' states.
    """

    store: Store
    folder: str
    seed: str
    shares: int
    every: timedelta
    watching: Watching
    forgotten: ErasedPlayers
    refresher: Refresher
    _base: Base = field(default_factory=Base)
    _files: Sequence[tuple[int, str]] = ()
    _changes: list[tuple[int, str]] = field(default_factory=list)
    _carried: str = ""
    _moment: int = 0
    _taken: int = -1
    _changed: int = 0
    _publishing: tuple[str, ...] = ()
    _refreshed_at: float = field(default_factory=time.monotonic)
    # A clock that jumps would leave minutes without events, which look like a silent game.
    _clock: Callable[[], int] = field(default_factory=SteadyClock)

    @property
    def left_out(self) -> int:
        """Always 0: the number of events has no limit."""
        return 0

    def resume(self, manifests: Manifests) -> None:
        """Find the state: the table's, and the changes of the batches since.

        Raises:
            StoreError: a file of the state is gone.
        """
        self._base, self._files = self.refresher.table.base()
        self._moment = self._base.moment
        # Even if the table has the last batch, its manifest names the counts that the next batch continues from.
        new = manifests.after(self._base.batch_id)
        for manifest in manifests.read_many(new) if new else manifests.last(1):
            self._follow(manifest)
        if self._carried:
            self.watching.go_on_from(read_table(self.store, self._carried))
        self._clean_up()

    def plan(self, seed: str, batch_id: int) -> StatePlan:
        """Return the state that the tasks of a batch begin with, after polling for erasures.

        Args:
            seed: ignored; the stream has its own seed.
            batch_id: the batch to decide.
        """
        self.forgotten.poll()
        self._publishing, players = self.forgotten.unpublished()
        return replace(self._now(batch_id), forgotten=players)

    def _now(self, batch_id: int) -> StatePlan:
        return StatePlan(
            folder=self.folder,
            seed=self.seed,
            batch_id=batch_id,
            shares=self.shares,
            moment=self._moment,
            # If the clock is earlier than before a restart, events must not move into minutes that are over.
            clock=max(self._clock(), self._moment),
            base=self._base,
            files=self._files,
            changes=tuple(self._changes),
            erased=self.forgotten.keys,
        )

    def merged(self, batch_id: int) -> tuple[EventsFile, ...]:
        """Return no files: the table of players' states replaces earlier files instead."""
        del batch_id
        return ()

    def took(self, manifest: BatchManifest) -> None:
        """Record that all tables have the batch, and refresh the table of players' states if it is due."""
        if manifest.batch_id <= self._taken:
            return
        carried = self._carried
        self._follow(manifest)
        self.forgotten.published(self._publishing)
        self._remove([carried] if carried and carried != self._carried else [])
        if self._is_due():
            self.refresh()

    def _is_due(self) -> bool:
        waited = timedelta(seconds=time.monotonic() - self._refreshed_at)
        return waited >= self.every * intervals_to_wait(self._base.players, self._changed)

    def refresh(self) -> None:
        """Refresh the table of players' states with all batches up to the last.

        Raises:
            TransientError: other writers committed first at every attempt.
        """
        if self._taken > self._base.batch_id:
            old = [*(path for _, path in self._changes), *self._base.shares]
            segments = self._base.segments
            self._base, self._files = self.refresher.refresh(lambda: self._now(self._taken), self._newest_shares())
            self._changes.clear()
            self._changed = 0
            kept = {*self._base.shares, *self._base.segments}
            self._remove([path for path in (*old, *segments) if path not in kept])
        self._refreshed_at = time.monotonic()

    def _newest_shares(self) -> tuple[str, ...]:
        """Return the files of the last batch that changed a state."""
        if not self._changes:
            return self._base.shares
        last = self._changes[-1][0]
        return tuple(path for batch_id, path in self._changes if batch_id == last)

    def _follow(self, manifest: BatchManifest) -> None:
        state = manifest.state
        if state is not None:
            if manifest.batch_id > self._base.batch_id:
                self._changes += [(manifest.batch_id, path) for path in state.shares]
                self._changed += state.changed
            self._carried, self._moment = state.carried, max(self._moment, state.moment)
        self._taken = manifest.batch_id

    def _clean_up(self) -> None:
        """Remove files that a crash has left, but not those of undecided batches: another driver may be at work."""
        named = {*(path for _, path in self._changes), *self._base.shares, *self._base.segments, self._carried}
        self._remove(
            [path for path in self.store.paths(self.folder) if path not in named and batch_of(path) <= self._taken]
        )

    def _remove(self, paths: Sequence[str]) -> None:
        try:
            self.store.delete_all(paths)
        except (BaseError, OSError) as error:
            # No plan names them any longer. The next start finds them and tries again.
            log.warning("state_files_not_deleted", error=error, action="the next start tries again")
