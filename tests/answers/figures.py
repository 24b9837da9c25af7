"""The play in plain Python: players, their days and their sessions."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import Any, TypeVar

from tests.answers.play import ONE_GAME, TODAY, Event, known_events

Key = TypeVar("Key")
Thing = TypeVar("Thing")


def ago(days: int) -> date:
    """A day before today."""
    return TODAY - timedelta(days=days)


def grouped(things: Iterable[Thing], key: Callable[[Thing], Key]) -> dict[Key, list[Thing]]:
    """Things by a key, the keys in order."""
    groups: dict[Any, list[Thing]] = defaultdict(list)
    for thing in things:
        groups[key(thing)].append(thing)
    return dict(sorted(groups.items()))


def by_number(of_version: tuple[str, Any]) -> list[int]:
    """The order of versions such as 1.10."""
    return [int(number) for number in of_version[0].split(".")]


@dataclass(frozen=True, slots=True)
class PlayerDay:
    """What a player did on a day."""

    day: date
    game: str
    gamer: str
    events: list[Event]

    @property
    def purchases(self) -> int:
        """Purchases with a price."""
        return sum(event.is_purchase for event in self.events)

    @property
    def paid(self) -> float:
        return sum(event.paid for event in self.events)


@dataclass(frozen=True, slots=True)
class Player:
    """What a player ever did."""

    game: str
    gamer: str
    events: list[Event]

    @property
    def sessions(self) -> int:
        """Sessions that were begun."""
        return sum(event.event_name == "session_start" for event in self.events)

    @property
    def paid(self) -> float:
        return sum(event.paid for event in self.events)

    @property
    def first(self) -> date:
        return min(event.event_time for event in self.events).date()

    @property
    def last(self) -> date:
        return max(event.event_time for event in self.events).date()


@dataclass(frozen=True, slots=True)
class Sitting:
    """What was played of a session on one day."""

    day: date
    game: str
    events: list[Event]

    @property
    def platform(self) -> str:
        return self.events[0].platform or ""

    @property
    def version(self) -> str:
        return self.events[0].app_version or ""

    @property
    def began(self) -> datetime:
        """The first event."""
        return min(event.event_time for event in self.events)

    @property
    def minutes(self) -> float:
        """From the first event to the last, in whole seconds."""
        return (max(event.event_time for event in self.events) - self.began) // timedelta(seconds=1) / 60

    def has(self, name: str) -> bool:
        """Return True if something happened in it."""
        return any(event.event_name == name for event in self.events)


class Figures:
    """The play, sorted by player, time and place."""

    @cached_property
    def events(self) -> list[Event]:
        """All events, the platform's own too."""
        return known_events()

    @cached_property
    def played(self) -> list[Event]:
        return [event for event in self.events if event.event_name != "smoke_test"]

    @cached_property
    def one_game(self) -> list[Event]:
        """All events of the game that has questions of its own."""
        return [event for event in self.events if event.game_name == ONE_GAME]

    @cached_property
    def purchases(self) -> list[Event]:
        """The purchases with a price."""
        return [event for event in self.events if event.is_purchase]

    @cached_property
    def player_days(self) -> list[PlayerDay]:
        by_day = grouped(self.played, lambda event: (event.day, event.game_name, event.gamer_id))
        return [PlayerDay(*key, events) for key, events in by_day.items()]

    @cached_property
    def players(self) -> list[Player]:
        by_player = grouped(self.played, lambda event: (event.game_name, event.gamer_id))
        return [Player(*key, events) for key, events in by_player.items()]

    @cached_property
    def sessions(self) -> list[Sitting]:
        """Whole sessions, each on the day when it began."""
        played = (event for event in self.played if event.session_id is not None)
        by_session = grouped(played, lambda event: (event.game_name, event.gamer_id, event.session_id))
        days = (min(event.day for event in events) for events in by_session.values())
        return [Sitting(day, key[0], events) for day, (key, events) in zip(days, by_session.items(), strict=True)]

    @cached_property
    def sittings(self) -> list[Sitting]:
        """Sessions, cut at midnight."""
        played = (event for event in self.played if event.session_id is not None)
        by_session = grouped(played, lambda event: (event.day, event.game_name, event.gamer_id, event.session_id))
        return [Sitting(day, game, events) for (day, game, _, _), events in by_session.items()]


FIGURES = Figures()
