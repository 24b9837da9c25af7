"""What the gateway has acknowledged, so that tables can be compared with it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass


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
