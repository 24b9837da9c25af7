"""The state from batch to batch, on the driver: what the next one begins with, and when the table gets what is new.

Nothing of it grows with the players but the names of files.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import numpy as np
from obstore.exceptions import BaseError

from gamelake.model.clocks import SteadyClock
from gamelake.model.logs import event_logger
from gamelake.privacy.erasure_records import ErasureRecords
from gamelake.serving.live_ops.plan import Base, StatePlan
from gamelake.serving.live_ops.players import Keys
from gamelake.serving.live_ops.refreshing import Refresher, intervals_to_wait
from gamelake.serving.live_ops.state_files import batch_of, read_table
from gamelake.serving.live_ops.updating import keys_of_players
from gamelake.serving.live_ops.watching import Watching
from gamelake.storage.manifests import BatchManifest, Manifests
from gamelake.storage.store import Store

_POLL_SECONDS = 5.0


@dataclass(slots=True)
class ErasedPlayers:
    """The players of some games who were forgotten; the erasure records are read every few seconds.

    A start treats all of them as new: the topic gets the same tombstones again, which changes nothing.
    """

    store: Store
    games: tuple[str, ...]
    seed: str
    _seen: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    _published: set[str] = field(default_factory=set)
    _keys: Keys = field(default_factory=lambda: np.zeros(0, np.uint64))
    _polled_at: float = float("-inf")

    def poll(self) -> None:
        """Read what was asked for since the last poll, if that is some seconds ago."""
        if time.monotonic() - self._polled_at < _POLL_SECONDS:
            return
        self.poll_now()

    def poll_now(self) -> None:
        """Read what was asked for since the last poll."""
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
        """The keys of all erased players, uint64 as bytes."""
        return self._keys.tobytes()

    def unpublished(self) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
        """The runs that the topic does not know of yet, and their players."""
        runs = tuple(run for run in self._seen if run not in self._published)
        return runs, tuple(player for run in runs for player in self._seen[run])

    def published(self, runs: tuple[str, ...]) -> None:
        """The topic knows of these runs."""
        self._published.update(runs)


log = event_logger(__name__)


@dataclass(slots=True)
class StateKeeper:
    """What a live-ops stream remembers."""

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
    # A jump would leave minutes without events, which look like a game that is silent.
    _clock: Callable[[], int] = field(default_factory=SteadyClock)

    @property
    def left_out(self) -> int:
        """None: there is no limit on the number of events."""
        return 0

    def resume(self, manifests: Manifests) -> None:
        """Find the state: the table's, and what the batches have changed since."""
        self._base, self._files = self.refresher.table.base()
        self._moment = self._base.moment
        # The last one may be in the table already, and yet has what the next batch goes on from.
        new = manifests.after(self._base.batch_id)
        for manifest in manifests.read_many(new) if new else manifests.last(1):
            self._follow(manifest)
        if self._carried:
            self.watching.go_on_from(read_table(self.store, self._carried))
        self._clean_up()

    def plan(self, seed: str, batch_id: int) -> StatePlan:
        """What the tasks of a batch begin with."""
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
            # A clock that went back between two starts must not move events into minutes that are over.
            clock=max(self._clock(), self._moment),
            base=self._base,
            files=self._files,
            changes=tuple(self._changes),
            erased=self.forgotten.keys,
        )

    def took(self, manifest: BatchManifest) -> None:
        """Every table has the batch; now and then the table of the states gets it, too."""
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
        """Bring the table of the states up to date with the last batch."""
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
        """The files of the last batch that changed anything."""
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
        """Remove what a crash has left; of a batch that is not decided yet nothing, another driver may be about to."""
        named = {*(path for _, path in self._changes), *self._base.shares, *self._base.segments, self._carried}
        self._remove(
            [path for path in self.store.paths(self.folder) if path not in named and batch_of(path) <= self._taken]
        )

    def _remove(self, paths: Sequence[str]) -> None:
        try:
            self.store.delete_all(paths)
        except (BaseError, OSError) as error:
            # They are in no plan any more; the next start finds them and tries again.
            log.warning("state_files_not_deleted", error=error, action="the next start tries again")
