"""A worker process's memory of its share of the players: read from the table and files, and kept from batch to batch.

Only files that the plan names count, since manifests have named them. If a failed attempt has changed the memory, no
plan names its file, so the memory is rebuilt from the plan.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gamelake.layers.identity import Identities
from gamelake.model.arrays import Words
from gamelake.model.errors import StoreError
from gamelake.model.worker_cache import per_worker
from gamelake.objects.store import Store
from gamelake.serving.live_ops.plan import StatePlan
from gamelake.serving.live_ops.states.hour import LastHour
from gamelake.serving.live_ops.states.player_table import PLAYER_STATE, as_states
from gamelake.serving.live_ops.states.players import STATE_SCHEMA, blank, share_of
from gamelake.serving.live_ops.states.state_files import batch_of, read_changes, read_table

# Runs are merged until each is at least this many times as long as the next. More: fewer to search, more to merge.
_RATIO = 3


@dataclass(slots=True)
class PlayerRuns:
    """States by key. For several states of one player, the last one added counts. One thread uses it at a time."""

    _runs: list[tuple[Words, pa.Table]] = field(default_factory=list)

    def add(self, states: pa.Table) -> None:
        """Add states: columns of `STATE_SCHEMA`, one row for each player; they replace older ones."""
        if not len(states):
            return
        self._runs.append(_sorted(states))
        while len(self._runs) > 1 and len(self._runs[-2][0]) < _RATIO * len(self._runs[-1][0]):
            (_, older), (_, newer) = self._runs[-2:]
            self._runs[-2:] = [_newest(older, newer)]

    def find(self, keys: Words) -> pa.Table:
        """Look up the states of players.

        Args:
            keys: uint64, the players' keys, ascending, each once.

        Returns:
            Columns of `STATE_SCHEMA`, one row for each of `keys`, in order; blank states for unknown players.
        """
        found = np.zeros(len(keys), np.bool_)
        parts, rows = [], []
        for run_keys, states in reversed(self._runs):
            at = np.minimum(np.searchsorted(run_keys, keys), len(run_keys) - 1)
            here = np.flatnonzero(~found & (run_keys[at] == keys))
            found[here] = True
            parts.append(states.take(pa.array(at[here])))
            rows.append(here)
        missing = np.flatnonzero(~found)
        parts.append(blank(keys[missing]))
        rows.append(missing)
        order = np.argsort(np.concatenate(rows), kind="stable")
        return pa.concat_tables(parts).take(pa.array(order)).combine_chunks()

    def all(self) -> pa.Table:
        """Merge all runs into one, and return all states: columns of `STATE_SCHEMA`, in ascending order of `key`."""
        while len(self._runs) > 1:
            (_, older), (_, newer) = self._runs[-2:]
            self._runs[-2:] = [_newest(older, newer)]
        return self._runs[0][1] if self._runs else STATE_SCHEMA.empty_table()


def _sorted(states: pa.Table) -> tuple[Words, pa.Table]:
    keys = states["key"].to_numpy()
    order = np.argsort(keys, kind="stable")
    return keys[order], states.take(pa.array(order)).combine_chunks()


def _newest(older: pa.Table, newer: pa.Table) -> tuple[Words, pa.Table]:
    keys, states = _sorted(pa.concat_tables([older, newer]))
    last = np.ones(len(keys), np.bool_)
    last[:-1] = keys[1:] != keys[:-1]
    return keys[last], states.filter(pa.array(last)).combine_chunks()


@dataclass(slots=True)
class ShareMemory:
    """The players of one share, in memory.

    Attributes:
        batch_id: the last batch whose changes were applied.
        path: the file of these changes; "" if there are none.
        players: the players' states.
        hour: the purchases of the last hour.
        unsaved: the purchases that are in no segment yet (columns of `PURCHASES_SCHEMA`), with their batch.
    """

    batch_id: int = -1
    path: str = ""
    players: PlayerRuns = field(default_factory=PlayerRuns)
    hour: LastHour = field(default_factory=LastHour)
    unsaved: list[tuple[int, pa.Table]] = field(default_factory=list)

    def apply(self, path: str, states: pa.Table, purchases: pa.Table) -> None:
        """Apply the changes of a batch.

        Args:
            path: the file of the changes.
            states: columns of `STATE_SCHEMA`, one row for each changed player.
            purchases: columns of `PURCHASES_SCHEMA`, one row for each new purchase.
        """
        self.players.add(states)
        self.hour.add(purchases)
        self.batch_id, self.path = batch_of(path), path
        self.unsaved.append((self.batch_id, purchases))


@dataclass(slots=True)
class ShareMemories:
    """The shares that one process has in memory; all of one stream, which has the same number of shares while it runs.

    Attributes:
        shares: the memory of each share, by its number.
    """

    shares: dict[int, ShareMemory] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Share:
    """One task's share of the players.

    Attributes:
        plan: the state that the batch begins with.
        number: the share's number, from 0.
        store: the lakehouse.
    """

    plan: StatePlan
    number: int
    store: Store

    def memory(self) -> ShareMemory:
        """Return the memory of the share at the beginning of the batch, from this process or read from the store.

        Raises:
            StoreError: a file of the state is gone.
        """
        kept = per_worker(ShareMemories, (self.store.location.uri, self.plan.folder, self.plan.shares), ShareMemories)
        memory = kept.shares.get(self.number)
        if memory is None or not self._is_of_this_plan(memory):
            # An error while the memory is rebuilt must not leave half of it behind.
            kept.shares.pop(self.number, None)
            memory = self._from_base()
        # A batch that had another number of shares has several files for this share.
        known = memory.batch_id
        paths = [path for batch_id, path in self.plan.changes if batch_id > known and self._concerns(path)]
        for path, change in zip(paths, read_changes(self.store, paths), strict=True):
            memory.apply(path, *self._mine(*change))
        memory.unsaved = [each for each in memory.unsaved if each[0] > self.plan.base.batch_id]
        kept.shares[self.number] = memory
        return memory

    @property
    def label(self) -> str:
        """The label in the names of this share's files."""
        return f"{self.number}of{self.plan.shares}"

    def _is_of_this_plan(self, memory: ShareMemory) -> bool:
        named = {path for _, path in self.plan.changes} | set(self.plan.base.shares)
        return memory.path in named if memory.path else not self.plan.base.shares

    def _concerns(self, path: str) -> bool:
        label = path.rsplit("/", 1)[-1].split("-")[2]
        return label == self.label or not label.endswith(f"of{self.plan.shares}")

    def _from_base(self) -> ShareMemory:
        base = self.plan.base
        own = [path for path in base.shares if self._concerns(path)]
        memory = ShareMemory(batch_id=base.batch_id, path=own[0] if own else "")
        for states in self._table_rows():
            memory.players.add(states)
        for path in base.segments:
            memory.hour.add(self._of_share(read_table(self.store, path)))
        return memory

    def _table_rows(self) -> Iterator[pa.Table]:
        identities = Identities(self.plan.seed)
        for bucket, place in self.plan.files:
            if bucket % self.plan.shares == self.number:
                content = self.store.get(f"{PLAYER_STATE}/{place}")
                if content is None:
                    raise StoreError(
                        f"{PLAYER_STATE}/{place} is gone, but the table's newest version names it: restore it, or give "
                        "GAMELAKE_STREAM another name to rebuild the state from Kafka's records"
                    )
                yield as_states(pq.read_table(pa.BufferReader(content)), identities)

    def _mine(self, states: pa.Table, purchases: pa.Table) -> tuple[pa.Table, pa.Table]:
        return self._of_share(states), self._of_share(purchases)

    def _of_share(self, rows: pa.Table) -> pa.Table:
        return rows.filter(pa.array(share_of(rows["key"].to_numpy(), self.plan.shares) == self.number))
