"""Who was forgotten, by the account of the erasures: no state of theirs may be published or kept."""

import time
from dataclasses import dataclass, field

import numpy as np

from gamelake.lake.store import Store
from gamelake.live_ops.players import Keys
from gamelake.live_ops.updating import keys_of_players
from gamelake.maintenance.erasure_records import ErasureRecords

_LOOK_EVERY_SECONDS = 5.0


@dataclass(slots=True)
class Forgotten:
    """The players of some games who were forgotten; the account is looked at every few seconds.

    A start takes all of them for new: what the last run has told the topic of is told again, which changes nothing.
    """

    store: Store
    games: tuple[str, ...]
    seed: str
    _seen: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    _told: set[str] = field(default_factory=set)
    _keys: Keys = field(default_factory=lambda: np.zeros(0, np.uint64))
    _looked_at: float = float("-inf")

    def look(self) -> None:
        """Read what was asked for since the last look, if that is some seconds ago."""
        if time.monotonic() - self._looked_at < _LOOK_EVERY_SECONDS:
            return
        self.look_now()

    def look_now(self) -> None:
        """Read what was asked for since the last look."""
        for run, players in ErasureRecords(self.store).requested_since(frozenset(self._seen)).items():
            # A sweep names no game.
            self._seen[run] = tuple(
                (game, pseudonym)
                for pseudonym in players.pseudonyms
                for game in ([players.game] if players.game else self.games)
            )
            self._keys = np.concatenate([self._keys, keys_of_players(self._seen[run], self.seed)[2]])
        self._looked_at = time.monotonic()

    @property
    def keys(self) -> bytes:
        """The keys of all who were forgotten."""
        return self._keys.tobytes()

    def untold(self) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
        """The runs that the topic does not know of yet, and their players."""
        runs = tuple(run for run in self._seen if run not in self._told)
        return runs, tuple(player for run in runs for player in self._seen[run])

    def told(self, runs: tuple[str, ...]) -> None:
        """The topic knows of these runs."""
        self._told.update(runs)
