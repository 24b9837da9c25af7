"""The answers to the questions about funnels, one entry after the other."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from tests.answers.figures import FIGURES, ago, by_number, grouped
from tests.answers.play import TODAY, Event
from tests.answers.rounding import Rounded

Rows = list[tuple[Any, ...]]
Step = Callable[[Event], bool]
PURCHASE: Mapping[str, Step] = {
    "played": lambda event: event.event_name == "session_start",
    "completed_a_level": lambda event: event.event_name == "level_completed",
    "bought": lambda event: event.is_purchase,
}
ATTEMPTS: Mapping[str, Step] = {
    "began": lambda event: event.event_name == "session_start",
    "started_a_level": lambda event: event.event_name == "level_started",
    "completed_a_level": lambda event: event.event_name == "level_completed",
    "completed_a_second_level": lambda event: event.event_name == "level_completed",
}


def _depths(
    events: Sequence[Event], steps: Sequence[Step], within: timedelta
) -> Iterator[tuple[date, str | None, int]]:
    """The day and version of each entry of one player or session, and how many steps it reached."""
    events = sorted(events, key=lambda event: event.event_time)
    entries: dict[tuple[date, str | None], datetime] = {}
    for event in events:
        if steps[0](event):
            entries.setdefault((event.day, event.app_version), event.event_time)
    for (day, version), entered in entries.items():
        depth, moment = 1, entered
        for event in events:
            if depth < len(steps) and steps[depth](event) and moment < event.event_time <= entered + within:
                depth, moment = depth + 1, event.event_time
        yield day, version, depth


def funnel_first_purchase() -> Rows:
    reached: dict[tuple[str, str], list[int]] = {}
    for (game, _), events in grouped(FIGURES.played, lambda event: (event.game_name, event.gamer_id)).items():
        for day, version, depth in _depths(events, list(PURCHASE.values()), timedelta(days=7)):
            if day >= ago(14) and version:
                reached.setdefault((game, version), []).append(depth)
    rows: Rows = []
    for (game, version), depths in sorted(reached.items(), key=lambda of: (of[0][0], by_number((of[0][1], None)))):
        counts = [sum(depth >= step for depth in depths) for step in range(1, 4)]
        for step, (name, count, before) in enumerate(zip(PURCHASE, counts, [counts[0], *counts], strict=False), 1):
            drop_off = Rounded(1 - count / before, 4) if before else None
            rows.append((game, version, step, name, count, Rounded(count / len(depths), 4), drop_off))
    return rows


def funnel_level_attempts() -> Rows:
    reached: dict[tuple[date, str], list[int]] = {}
    in_sessions = (event for event in FIGURES.played if event.session_id)
    sessions = grouped(in_sessions, lambda event: (event.game_name, event.gamer_id, event.session_id or ""))
    for (game, _, _), events in sessions.items():
        for day, _, depth in _depths(events, list(ATTEMPTS.values()), timedelta(minutes=30)):
            if ago(7) <= day < TODAY:
                reached.setdefault((day, game), []).append(depth)
    rows: Rows = []
    for key, depths in sorted(reached.items()):
        counts = [sum(depth >= step for depth in depths) for step in range(1, 5)]
        for step, (name, count, before) in enumerate(zip(ATTEMPTS, counts, [counts[0], *counts], strict=False), 1):
            rows.append((*key, step, name, count, before - count))
    return rows


OF_FUNNELS: Mapping[str, Callable[[], Rows]] = {
    answer.__name__: answer for answer in (funnel_first_purchase, funnel_level_attempts)
}
