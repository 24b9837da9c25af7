"""The answers to the questions about concurrent players, crashes and load times."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from tests.answers.figures import FIGURES, ago, by_number, grouped
from tests.answers.play import TODAY, WITHOUT_RESOURCES, Event
from tests.answers.rounding import Rounded

Rows = list[tuple[Any, ...]]
_MINUTE = timedelta(minutes=1)


def _concurrent() -> Mapping[tuple[date, str], Counter[datetime]]:
    """Count the players of each minute, one minute of one session after the other."""
    players: dict[tuple[date, str], set[tuple[datetime, str]]] = {}
    for sitting in FIGURES.sittings:
        minute = sitting.began.replace(second=0, microsecond=0)
        while minute <= max(event.event_time for event in sitting.events):
            players.setdefault((sitting.day, sitting.game), set()).add((minute, sitting.events[0].gamer_id))
            minute += _MINUTE
    return {key: Counter(minute for minute, _ in of_day) for key, of_day in sorted(players.items())}


def concurrent_players_peak() -> Rows:
    rows = []
    for (day, game), minutes in _concurrent().items():
        if day >= ago(14):
            peak = max(minutes.values())
            first = min(minute for minute, players in minutes.items() if players == peak)
            rows.append((day, game, peak, first, day >= TODAY))
    return rows


def concurrent_players_by_minute() -> Rows:
    rows: Rows = []
    for (day, game), minutes in _concurrent().items():
        if day == ago(1):
            every = [min(minutes) + number * _MINUTE for number in range((max(minutes) - min(minutes)) // _MINUTE + 2)]
            changed = [minute for minute in every if minutes[minute] != minutes[minute - _MINUTE]]
            following = [*changed[1:], None]
            rows += [(game, minute, then, minutes[minute]) for minute, then in zip(changed, following, strict=True)]
    return rows


def _sessions(events: Sequence[Event]) -> int:
    return len({(event.gamer_id, event.session_id) for event in events if event.session_id})


def crash_free_by_version() -> Rows:
    recent = (event for event in FIGURES.events if event.day >= ago(14) and event.app_version and event.platform)
    rows = []
    versions = grouped(recent, lambda event: (event.game_name, event.app_version or ""))
    for (game, version), events in sorted(versions.items(), key=lambda of: (of[0][0], by_number((of[0][1], None)))):
        parts = list(grouped(events, lambda event: (event.day, event.platform or "")).values())
        crashes = [[event for event in part if event.fatal] for part in parts]
        sessions, players = (sum(map(count, parts)) for count in (_sessions, _players))
        crashed_sessions, crashed_players = (sum(map(count, crashes)) for count in (_sessions, _players))
        free = (Rounded(1 - crashed_sessions / sessions, 4), Rounded(1 - crashed_players / players, 4))
        rows.append((game, version, sessions, sum(map(len, crashes)), *free))
    return rows


def _players(events: Sequence[Event]) -> int:
    return len({event.gamer_id for event in events})


def load_times_by_version() -> Rows:
    loads = (event for event in FIGURES.events if event.day == ago(1) and event.game_name != WITHOUT_RESOURCES)
    found = grouped(
        (event for event in loads if event.load_ms is not None),
        lambda event: (event.game_name, event.event_name, event.platform or "", event.app_version or ""),
    )
    rows = []
    for key, events in sorted(found.items(), key=lambda of: (*of[0][:3], by_number((of[0][3], None)))):
        waits = sorted(event.load_ms or 0 for event in events)
        rows.append((*key, len(waits), *(_percentile(waits, percent) for percent in (50, 90, 99))))
    return rows


def _percentile(waits: Sequence[int], percent: int) -> int:
    """Return the least wait that covers this percentage of the waits."""
    return next(wait for number, wait in enumerate(waits, 1) if 100 * number >= percent * len(waits))


OF_VERSIONS: Mapping[str, Callable[[], Rows]] = {
    answer.__name__: answer
    for answer in (
        concurrent_players_by_minute, concurrent_players_peak, crash_free_by_version, load_times_by_version,
    )
}  # fmt: skip
