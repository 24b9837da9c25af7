"""Ledgers of a run, which tables can be reconciled with: what was sent to Kafka, what the gateway acknowledged."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Self

import numpy as np

from tools.simulator.defects import Corrupted, Corruption, Defect, corruption_kinds
from tools.simulator.event_arrays import EventArrays
from tools.simulator.reference_data import UNKNOWN_GAMES
from tools.simulator.spec import TrafficSpec


@dataclass(frozen=True, slots=True)
class GameCounts:
    """Decodable events of one game; each event is in one count; `duplicated` ones were sent twice."""

    on_time: int
    late: int
    future: int
    duplicated: int
    null_time: int
    wrong_clock: int = 0

    @property
    def events(self) -> int:
        """All events, each counted once."""
        return self.on_time + self.late + self.future + self.duplicated + self.null_time + self.wrong_clock


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaLedger:
    """The records that a run sent to Kafka: `sent` = events of the games + duplicates + unknown games + undecodable.

    Attributes:
        acked: records that Kafka has confirmed; the others of `sent` failed.
        value_bytes: total size of the sent values.
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
    wrong_clock: int = 0

    def to_json(self) -> str:
        """Return the ledger as indented JSON."""
        return json.dumps(asdict(self), indent=2)


class KafkaLedgerBuilder:
    """Counts events while they are sent."""

    def __init__(self, spec: TrafficSpec) -> None:
        self._spec = spec
        games = len(spec.game_names) + len(UNKNOWN_GAMES)
        self._defects = np.zeros((len(Defect), games), dtype=np.int64)
        self._corruptions = np.zeros(len(Corruption), dtype=np.int64)
        self._versions = np.zeros(spec.versions + 1, dtype=np.int64)
        self._sent = self._value_bytes = 0

    def add(self, events: EventArrays, *, records: int, value_bytes: int) -> Self:
        """Count events that were sent as `records` records; duplicates make more records than events."""
        cells = events.defect.astype(np.int64) * self._defects.shape[1] + events.game
        self._defects += np.bincount(cells, minlength=self._defects.size).reshape(self._defects.shape)
        kinds = corruption_kinds(Corrupted.of(events).salt)
        self._corruptions += np.bincount(kinds, minlength=len(Corruption))
        times_sent = 1 + (events.defect == Defect.DUPLICATED)
        versions = np.bincount(events.schema, weights=times_sent, minlength=len(self._versions))
        self._versions += versions.astype(np.int64)
        self._sent += records
        self._value_bytes += value_bytes
        return self

    def build(self, *, acked: int) -> KafkaLedger:
        """Sum up the run."""
        totals = self._defects.sum(axis=1).tolist()
        known = len(self._spec.game_names)
        unknown = self._defects[Defect.UNKNOWN_GAME, known:].tolist()
        return KafkaLedger(
            sent=self._sent,
            acked=acked,
            value_bytes=self._value_bytes,
            duplicates=totals[Defect.DUPLICATED],
            late=totals[Defect.LATE],
            future=totals[Defect.FUTURE],
            null_time=totals[Defect.NULL_TIME],
            wrong_clock=totals[Defect.WRONG_CLOCK],
            by_game={name: self._game(number) for number, name in enumerate(self._spec.game_names)},
            unknown_game=dict(zip(UNKNOWN_GAMES, unknown, strict=True)),
            undecodable={str(kind): count for kind, count in zip(Corruption, self._corruptions.tolist(), strict=True)},
            by_version=dict(enumerate(self._versions.tolist()[1:], start=1)),
        )

    def _game(self, number: int) -> GameCounts:
        counts = self._defects[:, number].tolist()
        return GameCounts(
            on_time=counts[Defect.NONE],
            late=counts[Defect.LATE],
            future=counts[Defect.FUTURE],
            duplicated=counts[Defect.DUPLICATED],
            null_time=counts[Defect.NULL_TIME],
            wrong_clock=counts[Defect.WRONG_CLOCK],
        )


@dataclass(frozen=True, slots=True)
class AcknowledgedEvents:
    """Acknowledged `events` of a game, of which `duplicates` had been acknowledged before."""

    events: int
    duplicates: int

    @property
    def rows(self) -> int:
        """Distinct events."""
        return self.events - self.duplicates


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTimes:
    """Duration of the last request of each batch, in milliseconds; of the last 10,000 batches of each game."""

    p50_ms: float
    p99_ms: float
    max_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLedger:
    """The events that a run sent to the gateway: `sent` = acknowledged + rejected + refused + unsettled.

    Attributes:
        sent: events that were handed to the SDKs; one that was handed over twice counts twice.
        by_game: acknowledged events, by the game's title.
        rejected: events that the gateway rejected one by one, by its reason.
        refused: events of batches that the gateway refused as a whole.
        unsettled: events that were still waiting when the run ended.
        players: distinct players with an acknowledged event.
        requests: HTTP requests, as `retries`.
        unanswered: requests without a response: Kafka may have their events or not.
        seconds: from the first event handed over to the last one settled.
        personal: samples of personal data, which only the vault may have.
    """

    sent: int
    by_game: Mapping[str, AcknowledgedEvents]
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
        """Acknowledged events of all games, duplicates included."""
        return sum(each.events for each in self.by_game.values())

    @property
    def duplicates(self) -> int:
        """Events that were acknowledged a second time."""
        return sum(each.duplicates for each in self.by_game.values())

    def to_json(self) -> str:
        """Return the ledger as indented JSON."""
        totals = {"target": "http", "acknowledged": self.acknowledged, "duplicates": self.duplicates}
        return json.dumps({**totals, **asdict(self)}, indent=2)
