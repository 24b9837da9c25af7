"""Every answer by its question's name, and what an engine must give for it."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from tests.answers.of_all_games import OF_ALL_GAMES
from tests.answers.of_cohorts import OF_COHORTS
from tests.answers.of_funnels import OF_FUNNELS
from tests.answers.of_money import OF_MONEY
from tests.answers.of_one_game import OF_ONE_GAME
from tests.answers.of_players import OF_PLAYERS
from tests.answers.of_resources import OF_RESOURCES
from tests.answers.of_subscriptions import OF_SUBSCRIPTIONS
from tests.answers.of_versions import OF_VERSIONS

ANSWERS = {
    **OF_ALL_GAMES,
    **OF_COHORTS,
    **OF_FUNNELS,
    **OF_MONEY,
    **OF_ONE_GAME,
    **OF_PLAYERS,
    **OF_RESOURCES,
    **OF_SUBSCRIPTIONS,
    **OF_VERSIONS,
}


def plain(row: tuple[Any, ...] | list[Any]) -> tuple[Any, ...]:
    """An engine's row, its moments in UTC and its numbers Python's own."""
    return tuple(_plain(value) for value in row)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value if not isinstance(value, date) else date(value.year, value.month, value.day)
