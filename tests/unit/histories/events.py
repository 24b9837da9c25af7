"""The events of histories: what a player does, and the event that a game sends of it."""

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum
from uuid import UUID

from gamelake.privacy.vault.secrecy import PlayerKey
from tests.unit.streaming.tasks import Json, framed, game_event_schema, schema_id

# The games by their titles; the last one is not in the contract until a history adds it.
GAMES = {"Kart Rumble": "kart_rumble", "Archery Duel": "archery_duel", "Bingo Harbor": "bingo_harbor"}
KART, ARCHERY, NEW_GAME = GAMES
BEGINNING = datetime(2026, 6, 15, tzinfo=UTC)
DAYS = 3
# Questions are asked on the last day of the events, and records arrive after it.
TODAY = (BEGINNING + timedelta(days=DAYS - 1)).date()
NOW = datetime.combine(TODAY, time(12), UTC)
ARRIVAL = BEGINNING + timedelta(days=DAYS)
NEWEST_SCHEMA = 3


class Source(StrEnum):
    """The way in which an event comes."""

    KAFKA = "kafka"
    FILE = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """What a player does in a game.

    Attributes:
        minute: since `BEGINNING`.
        level: only the newest schema has it.
        has_id: whether the game gives the event an id, by which it is found when it comes again.
    """

    player: int | None = 0
    game: str = KART
    name: str = "level_completed"
    minute: int = 0
    session: str | None = "1"
    platform: str | None = "ios"
    version: str | None = "1.9"
    amount: float | None = None
    level: int | None = None
    schema: int = NEWEST_SCHEMA
    has_id: bool = True


@dataclass(frozen=True, slots=True)
class Event:
    """An event: what happened, its number among all events of the history, and the player's pseudonym."""

    play: Play
    number: int
    gamer: str | None

    @property
    def id(self) -> str | None:
        """The id that the game gives it."""
        return str(UUID(int=self.number + 1)) if self.play.has_id else None

    @property
    def time(self) -> datetime:
        return BEGINNING + timedelta(minutes=self.play.minute)

    def fields(self) -> Json:
        """The event as a JSON object, without the fields that the game leaves out."""
        play = self.play
        params = {
            "platform": play.platform,
            "app_version": play.version,
            "amount": play.amount,
            "level": play.level if play.schema == NEWEST_SCHEMA else None,
        }
        event = {
            "event_id": self.id,
            "event_name": play.name,
            "event_time": self.time.isoformat(),
            "game_name": play.game,
            "gamer_id": self.gamer,
            "session_id": play.session,
            "event_params": {name: value for name, value in params.items() if value is not None},
        }
        return {name: value for name, value in event.items() if value is not None}

    def record(self) -> bytes:
        """The event as the value of a record of Kafka."""
        return framed(self.fields(), game_event_schema(self.play.schema), schema_id(self.play.schema))

    def line(self) -> bytes:
        return json.dumps(self.fields()).encode()


def table_of(title: str) -> str:
    """The silver table of a game."""
    return f"silver/{GAMES[title]}_events"


def key_of(game: str, player: int, life: int) -> PlayerKey:
    """The key of a player of a game, who has another one after each erasure.

    Args:
        game: its title.
        player: the player's number.
        life: how often the player was erased.
    """
    return PlayerKey(GAMES[game], hashlib.sha256(f"{game} {player} {life}".encode()).digest())
