"""The answers to the questions about players' history: each player's days are walked one after the other."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from tests.answers.figures import FIGURES, PlayerDay, ago, by_number, grouped
from tests.answers.play import TODAY

Rows = list[tuple[Any, ...]]
_LAPSE = 30


@dataclass(frozen=True, slots=True)
class Known:
    """The payer state and the version of a player at the end of a day."""

    payer_state: str
    version: str | None


def _history(days: list[PlayerDay]) -> Iterator[tuple[date, Known]]:
    """Yield what is known on each day from the player's first one to today."""
    by_day = {each.day: each for each in days}
    version: str | None = None
    purchases, last = 0, date.min
    for number in range((TODAY - min(by_day)).days + 1):
        day = min(by_day) + timedelta(days=number)
        if day in by_day:
            versions = [event.app_version for event in by_day[day].events if event.app_version]
            version = max(versions, key=lambda each: by_number((each, None))) if versions else version
            if by_day[day].purchases:
                purchases, last = purchases + by_day[day].purchases, day
        state = ("none", "first_time", "repeat")[min(purchases, 2)]
        yield day, Known("lapsed" if purchases and (day - last).days >= _LAPSE else state, version)


def _histories() -> Iterator[tuple[str, dict[date, Known]]]:
    for (game, _), days in grouped(FIGURES.player_days, lambda day: (day.game, day.gamer)).items():
        yield game, dict(_history(days))


def payer_states() -> Rows:
    counts = Counter((game, history[TODAY].payer_state) for game, history in _histories())
    return [(*key, players) for key, players in sorted(counts.items())]


def versions_a_week_ago() -> Rows:
    players: Counter[tuple[str, str]] = Counter()
    updated: defaultdict[tuple[str, str], int] = defaultdict(int)
    for game, history in _histories():
        if before := history.get(ago(7)):
            key = game, before.version or "unknown"
            players[key] += 1
            updated[key] += history[TODAY].version != before.version
    return [(*key, count, updated[key]) for key, count in sorted(players.items())]


def segment_sizes() -> Rows:
    players: Counter[str] = Counter()
    members: Counter[tuple[str, str]] = Counter()
    for (game, _), days in grouped(FIGURES.player_days, lambda day: (day.game, day.gamer)).items():
        players[game] += 1
        members.update({(game, segment): is_member for segment, is_member in _segments(game, days).items()})
    return [(*key, count, count / players[key[0]]) for key, count in sorted(members.items())]


def _segments(game: str, days: list[PlayerDay]) -> Mapping[str, bool]:
    """Return for each segment of contracts/segments.yaml whether the player is in it today."""
    first, last = min(day.day for day in days), max(day.day for day in days)
    events = [event for day in days for event in day.events]
    sessions = sum(event.event_name == "session_start" for event in events)
    paid = sum(day.paid for day in days if day.day > TODAY - timedelta(days=30))
    state = dict(_history(days))[TODAY].payer_state
    of_one_game = {"big_spenders": paid >= 50} if game == "Kart Rumble" else {}
    return of_one_game | {
        "newcomers": (TODAY - first).days < 3,
        "at_risk": 7 <= (TODAY - last).days <= 29 and sessions >= 5,
        "first_time_payers": state == "first_time",
        "lapsed_payers": state == "lapsed",
    }


OF_PLAYERS: Mapping[str, Callable[[], Rows]] = {
    answer.__name__: answer for answer in (payer_states, segment_sizes, versions_a_week_ago)
}
