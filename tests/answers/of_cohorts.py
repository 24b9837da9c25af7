"""The answers to the questions about cohorts by dimension, and about the cost of new players."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, timedelta
from functools import cache
from io import StringIO

import pyarrow as pa

from gamelake.serving.money.acquisition_cost import read_cost
from tests.answers.figures import FIGURES, Player, ago, grouped
from tests.answers.of_all_games import Rows
from tests.answers.of_money import RATES
from tests.answers.play import GAMES, TODAY
from tests.answers.rounding import Rounded, cents, share

# CLP has no rate.
_SPENT = (("meta", "EUR", 3.25), ("google", "USD", 1.5), ("google", "CLP", 900.0))


def value_of(player: Player, column: str) -> str:
    """The value in the first event with one, on the player's first day."""
    of_day = sorted((event for event in player.events if event.day == player.first), key=lambda each: each.event_time)
    return next((value for event in of_day if (value := getattr(event, column))), "unknown")


def _cells(column: str, least: int, days: Iterable[int]) -> Iterator[tuple[tuple[str, str, int], list[Player]]]:
    """The players of the last days whose day is over, by game, value and day."""
    by_value = grouped(FIGURES.players, lambda player: (player.game, value_of(player, column)))
    for (game, value), players in by_value.items():
        for day in days:
            if found := [player for player in players if ago(least) <= player.first < ago(day)]:
                yield (game, value, day), found


def _paid(player: Player, day: int) -> list[float]:
    return [each.paid for each in player.events if each.is_purchase and (each.day - player.first).days <= day]


def retention_by_country() -> Rows:
    played = {(each.day, each.game, each.gamer) for each in FIGURES.player_days}
    rows: Rows = []
    for (game, country, day), players in _cells("country", 45, (1, 7, 30)):
        back = sum((player.first + timedelta(days=day), game, player.gamer) in played for player in players)
        rows.append((game, country, day, len(players), share(back, len(players))))
    return rows


def lifetime_value_by_source() -> Rows:
    rows: Rows = []
    for key, players in _cells("install_source", 90, (7, 30)):
        bought = [_paid(player, key[2]) for player in players]
        value = Rounded(sum(map(sum, bought)) / len(players), 4)
        rows.append((*key, len(players), value, share(sum(map(bool, bought)), len(players))))
    return rows


def rolling_retention() -> Rows:
    rows: Rows = []
    for game, of_game in grouped(FIGURES.players, lambda player: player.game).items():
        for day in (1, 7, 30):
            players = [player for player in of_game if ago(90) <= player.first < ago(day)]
            back = sum((player.last - player.first).days >= day for player in players)
            rows.append((game, day, len(players), back, share(back, len(players))))
    return rows


def weekly_cohorts() -> Rows:
    played = grouped(FIGURES.player_days, lambda each: (each.game, each.gamer))
    rows: Rows = []
    for (week, game), players in grouped(FIGURES.players, lambda player: (_monday(player.first), player.game)).items():
        if week >= _monday(ago(77)):
            shares: list[Rounded | None] = []
            for number in range(4):
                days = range(7 * number + 1, 7 * number + 8)
                back = sum(
                    any((each.day - player.first).days in days for each in played[game, player.gamer])
                    for player in players
                )
                is_over = (TODAY - week).days - 7 >= days[-1]
                shares.append(share(back, len(players)) if is_over else None)
            rows.append((week, game, len(players), *shares))
    return rows


def acquisition_by_source() -> Rows:
    installs = {key: len(players) for key, players in _installs().items() if key[0] >= ago(30)}
    cost = {key: each for key, each in _cost().items() if key[0] >= ago(30)}
    rows: Rows = []
    for key in sorted({key[1:] for key in installs.keys() | cost.keys()}):
        count = sum(each for (_, *of), each in installs.items() if tuple(of) == key)
        known = [cost.get(each, 0.0) for each in installs.keys() | cost.keys() if each[1:] == key]
        spent = [each for each in known if each is not None]
        rows.append((*key, count, *_of_cost(spent, count)))
    return rows


def _of_cost(spent: list[float], installs: int) -> tuple[object, object]:
    total = sum(spent)
    if not spent:
        return None, None
    return cents(total), Rounded(total / installs, 4) if installs else None


def roas_by_source() -> Rows:
    cost = _cost()
    found: dict[tuple[str, str, int], list[tuple[float, list[Player]]]] = {}
    for (first, game, source), players in _installs().items():
        spent = cost.get((first, game, source))
        for day in (0, 1, 7, 30):
            if spent and ago(45) <= first < ago(day):
                found.setdefault((game, source, day), []).append((spent, players))
    rows: Rows = []
    for key, cohorts in sorted(found.items()):
        spent = sum(each for each, _ in cohorts)
        players = [player for _, group in cohorts for player in group]
        revenue = sum(sum(_paid(player, key[2])) for player in players)
        rows.append((*key, len(players), cents(spent), cents(revenue), Rounded(revenue / spent, 4)))
    return rows


def acquisition_cost() -> pa.Table:
    """The imported cost of all games."""
    lines = ["date,game,source,campaign,currency,cost"]
    lines += [
        f"{day},{GAMES[game]},{source},campaign {number},{currency},{amount}"
        for day, game, number, source, currency, amount in _lines()
    ]
    return read_cost(StringIO("\n".join(lines)), "cost.csv", {name: title for title, name in GAMES.items()})


def _lines() -> Iterator[tuple[date, str, int, str, str, float]]:
    for place in range(40):
        for game in GAMES:
            for number, (source, currency, amount) in enumerate(_SPENT):
                if currency != "CLP" or place % 5 == 0:
                    yield ago(place), game, number, source, currency, amount + place


@cache
def _cost() -> Mapping[tuple[date, str, str], float | None]:
    """What was spent in US dollars by day, game and source; None if a currency has no rate."""
    found: dict[tuple[date, str, str], float | None] = {}
    for day, game, _, source, currency, amount in _lines():
        before = found.get((day, game, source), 0.0)
        rate = RATES.get(currency)
        found[day, game, source] = None if before is None or rate is None else before + amount * rate
    return found


def _installs() -> Mapping[tuple[date, str, str], list[Player]]:
    return grouped(FIGURES.players, lambda player: (player.first, player.game, value_of(player, "install_source")))


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


OF_COHORTS: Mapping[str, Callable[[], Rows]] = {
    answer.__name__: answer
    for answer in (
        acquisition_by_source, lifetime_value_by_source, retention_by_country, roas_by_source, rolling_retention,
        weekly_cohorts,
    )
}  # fmt: skip
