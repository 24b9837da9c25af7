"""What was sent, kind by kind, so that tables can be compared with it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Self

import numpy as np

from tools.simulator.defects import Fate, Spoiling, spoil_kinds
from tools.simulator.event_arrays import Moments
from tools.simulator.reference_data import UNKNOWN_GAMES
from tools.simulator.spec import TrafficSpec


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


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """Answered with 2xx and accepted: `events` of a game, of which `duplicates` were acknowledged before."""

    events: int
    duplicates: int

    @property
    def rows(self) -> int:
        """Each event once."""
        return self.events - self.duplicates


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTimes:
    """How long the last request of each batch took, in milliseconds."""

    p50_ms: float
    p99_ms: float
    max_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLedger:
    """A run's accounts: `sent` = acknowledged + rejected + refused + unsettled.

    Args:
        sent: events that were handed to the SDKs, those that were handed over twice counted twice.
        by_game: what was acknowledged, by the game's title.
        rejected: events that the gateway would not have, by its reason.
        refused: events of batches that were not looked at.
        unsettled: events that were still waiting when the run ended.
        players: people of whom an event was acknowledged.
        unanswered: requests of which it is not known whether Kafka has their events; the other counts are of requests
            and bytes too.
        seconds: from the first event handed over to the last one settled.
        personal: some of what was said of people, which must be nowhere but in the vault.
    """

    sent: int
    by_game: Mapping[str, Acknowledged]
    rejected: Mapping[str, int]
    refused: int
    unsettled: int
    players: int
    requests: int
    retries: int
    unanswered: int
    sent_bytes: int
    seconds: float
    request_times: RequestTimes
    personal: tuple[str, ...]

    @property
    def acknowledged(self) -> int:
        """Events of all games, duplicates included."""
        return sum(each.events for each in self.by_game.values())

    @property
    def duplicates(self) -> int:
        """Events that were acknowledged for the second time."""
        return sum(each.duplicates for each in self.by_game.values())

    def to_json(self) -> str:
        """Write the accounts for a person or a program."""
        totals = {"target": "http", "acknowledged": self.acknowledged, "duplicates": self.duplicates}
        return json.dumps({**totals, **asdict(self)}, indent=2)
