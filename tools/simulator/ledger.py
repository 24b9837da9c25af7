"""What was sent, kind by kind, so that tables can be compared with it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Self

import numpy as np

from tools.simulator.catalog import UNKNOWN_GAMES
from tools.simulator.fates import Fate
from tools.simulator.moments import Moments
from tools.simulator.spec import TrafficSpec
from tools.simulator.spoil import Spoiling, spoil_kinds


@dataclass(frozen=True, slots=True)
class GameCounts:
    """Decodable events of one game; each event is in one count, and `duplicated` ones were sent twice."""

    on_time: int
    late: int
    future: int
    duplicated: int
    null_time: int

    @property
    def events(self) -> int:
        """All events, each counted once."""
        return self.on_time + self.late + self.future + self.duplicated + self.null_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """A run's accounts: `sent` = events of the games + duplicates + unknown games + undecodable.

    Args:
        acked: records that Kafka has confirmed; the rest of `sent` failed.
        value_bytes: size of all sent values together.
        by_version: sent records by schema version, undecodable ones included.
    """

    sent: int
    acked: int
    value_bytes: int
    duplicates: int
    late: int
    future: int
    null_time: int
    by_game: Mapping[str, GameCounts]
    unknown_game: Mapping[str, int]
    undecodable: Mapping[str, int]
    by_version: Mapping[int, int]

    def to_json(self) -> str:
        """Write the accounts for a person or a program."""
        return json.dumps(asdict(self), indent=2)


class Bookkeeper:
    """Adds up a ledger while events are sent."""

    def __init__(self, spec: TrafficSpec) -> None:
        self._spec = spec
        games = len(spec.game_names) + len(UNKNOWN_GAMES)
        self._fates = np.zeros((len(Fate), games), dtype=np.int64)
        self._spoilings = np.zeros(len(Spoiling), dtype=np.int64)
        self._versions = np.zeros(spec.versions + 1, dtype=np.int64)
        self._sent = self._value_bytes = 0

    def note(self, moments: Moments, *, records: int, value_bytes: int) -> Self:
        """Enter events that have been handed to Kafka as so many records."""
        cells = moments.fate.astype(np.int64) * self._fates.shape[1] + moments.game
        self._fates += np.bincount(cells, minlength=self._fates.size).reshape(self._fates.shape)
        spoiled = moments.salt[moments.fate == Fate.UNDECODABLE]
        self._spoilings += np.bincount(spoil_kinds(spoiled), minlength=len(Spoiling))
        times_sent = 1 + (moments.fate == Fate.DUPLICATED)
        versions = np.bincount(moments.schema, weights=times_sent, minlength=len(self._versions))
        self._versions += versions.astype(np.int64)
        self._sent += records
        self._value_bytes += value_bytes
        return self

    def ledger(self, *, acked: int) -> Ledger:
        """Close the accounts."""
        totals = self._fates.sum(axis=1).tolist()
        known = len(self._spec.game_names)
        unknown = self._fates[Fate.UNKNOWN_GAME, known:].tolist()
        return Ledger(
            sent=self._sent,
            acked=acked,
            value_bytes=self._value_bytes,
            duplicates=totals[Fate.DUPLICATED],
            late=totals[Fate.LATE],
            future=totals[Fate.FUTURE],
            null_time=totals[Fate.NULL_TIME],
            by_game={name: self._game(number) for number, name in enumerate(self._spec.game_names)},
            unknown_game=dict(zip(UNKNOWN_GAMES, unknown, strict=True)),
            undecodable={str(kind): count for kind, count in zip(Spoiling, self._spoilings.tolist(), strict=True)},
            by_version=dict(enumerate(self._versions.tolist()[1:], start=1)),
        )

    def _game(self, number: int) -> GameCounts:
        counts = self._fates[:, number].tolist()
        return GameCounts(
            on_time=counts[Fate.ON_TIME],
            late=counts[Fate.LATE],
            future=counts[Fate.FUTURE],
            duplicated=counts[Fate.DUPLICATED],
            null_time=counts[Fate.NULL_TIME],
        )
