"""The states of many players in memory, as sorted runs: a change costs what it is long, not what all of them are."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from gamelake.live_ops.players import STATE_SCHEMA, Keys, blank

# Runs are merged until each is this many times the next one: fewer to look into, more to merge.
_RATIO = 3


@dataclass(slots=True)
class PlayerRuns:
    """States by key; of several of one player the one that came last counts."""

    _runs: list[tuple[Keys, pa.Table]] = field(default_factory=list)

    def add(self, states: pa.Table) -> None:
        """Take in states, each player once."""
        if not len(states):
            return
        self._runs.append(_sorted(states))
        while len(self._runs) > 1 and len(self._runs[-2][0]) < _RATIO * len(self._runs[-1][0]):
            (_, older), (_, newer) = self._runs[-2:]
            self._runs[-2:] = [_newest(older, newer)]

    def find(self, keys: Keys) -> pa.Table:
        """The states of players, in order; `keys` rise, and who is not here is blank."""
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
        """Every state, by key; from now on in one run."""
        while len(self._runs) > 1:
            (_, older), (_, newer) = self._runs[-2:]
            self._runs[-2:] = [_newest(older, newer)]
        return self._runs[0][1] if self._runs else STATE_SCHEMA.empty_table()


def _sorted(states: pa.Table) -> tuple[Keys, pa.Table]:
    keys = states["key"].to_numpy()
    order = np.argsort(keys, kind="stable")
    return keys[order], states.take(pa.array(order)).combine_chunks()


def _newest(older: pa.Table, newer: pa.Table) -> tuple[Keys, pa.Table]:
    keys, states = _sorted(pa.concat_tables([older, newer]))
    last = np.ones(len(keys), np.bool_)
    last[:-1] = keys[1:] != keys[:-1]
    return keys[last], states.filter(pa.array(last)).combine_chunks()
