"""The answers to the questions about what players gain and spend."""

from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

from tests.answers.figures import FIGURES, ago, grouped
from tests.answers.play import TODAY, WITHOUT_RESOURCES, Event
from tests.answers.rounding import Rounded, share

Rows = list[tuple[Any, ...]]


def _changes(events: list[Event] | None = None) -> list[tuple[Event, str, int, str]]:
    given = FIGURES.events if events is None else events
    return [(each, *each.resource) for each in given if each.resource and each.game_name != WITHOUT_RESOURCES]


def _gained(changes: list[tuple[Event, str, int, str]]) -> int:
    return sum(change for _, _, change, _ in changes if change > 0)


def _spent(changes: list[tuple[Event, str, int, str]]) -> int:
    return -sum(change for _, _, change, _ in changes if change < 0)


def economy_sources_and_sinks() -> Rows:
    recent = [each for each in _changes() if each[0].day >= ago(7)]
    of_items = grouped(recent, lambda each: (each[0].game_name, each[1]))
    rows = []
    for key, changes in grouped(recent, lambda each: (each[0].game_name, each[1], each[3])).items():
        gained, spent = _gained(changes), _spent(changes)
        every = of_items[key[:2]]
        rows.append((*key, gained, spent, share(gained, _gained(every)), share(spent, _spent(every))))
    return rows


def economy_inflation() -> Rows:
    rows: Rows = []
    for (game, item), changes in grouped(_changes(), lambda each: (each[0].game_name, each[1])).items():
        circulation = 0
        for day, of_day in grouped(changes, lambda each: each[0].day).items():
            gained, spent = _gained(of_day), _spent(of_day)
            inflation = Rounded((gained - spent) / circulation, 4) if circulation > 0 else None
            circulation += gained - spent
            if day >= ago(14):
                rows.append((game, item, day, gained, spent, circulation, inflation, day >= TODAY))
    return rows


def economy_unusual_sources() -> Rows:
    rows = []
    sources = grouped(_changes(), lambda each: (each[0].game_name, each[1], each[3]))
    for key, changes in sources.items():
        gains = {day: _gained(of_day) for day, of_day in grouped(changes, lambda each: each[0].day).items()}
        for day in (ago(1), TODAY):
            earlier = [gains.get(ago(days), 0) for days in range((TODAY - day).days + 1, (TODAY - day).days + 15)]
            given = [gain for gain in earlier if gain > 0]
            if len(given) >= 3 and gains.get(day, 0) > 3 * median(given):
                rows.append((day, *key, gains[day], median(given), Rounded(gains[day] / median(given), 2)))
    return sorted(rows, key=lambda row: row[:4])


OF_RESOURCES: Mapping[str, Callable[[], Rows]] = {
    answer.__name__: answer for answer in (economy_inflation, economy_sources_and_sinks, economy_unusual_sources)
}
