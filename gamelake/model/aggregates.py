"""Gold aggregates in the games contract: SQL over a silver table, and how the gold table is refreshed."""

from datetime import timedelta
from enum import StrEnum
from typing import Annotated

import msgspec

from gamelake.model.naming import GOLD, SILVER_EVENTS, game_table, gold_table

_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}

ColumnName = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
Interval = Annotated[str, msgspec.Meta(pattern=r"^[1-9][0-9]{0,4} (second|minute|hour|day)s?$")]


class Refresh(StrEnum):
    """How a gold table is refreshed: by merging changes, or by computing each changed partition again."""

    MERGE = "merge"
    PARTITION = "partition"


class Over(StrEnum):
    """The source of an aggregate: each game's events, with one gold table per game, or all games' events in one."""

    EACH_GAME = "each_game"
    ALL_GAMES = "all_games"


class AggregateSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One gold table per game, or one of all games: SQL expressions over silver, by column."""

    name: Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]{0,47}$")]
    group_by: Annotated[tuple[ColumnName, ...], msgspec.Meta(min_length=1)]
    columns: Annotated[dict[ColumnName, str], msgspec.Meta(min_length=1)]
    refresh: Refresh
    over: Over = Over.EACH_GAME
    every: Interval = "1 minute"
    description: str = ""
    descriptions: dict[ColumnName, str] = {}

    @property
    def interval(self) -> timedelta:
        """How often the table is refreshed."""
        number, unit = self.every.split()
        return timedelta(seconds=int(number) * _UNITS[unit.removesuffix("s")])

    def table(self, game: str) -> str:
        """The table of a game, or that of all games, relative to the lakehouse."""
        return gold_table(game, self.name) if self.over is Over.EACH_GAME else f"{GOLD}/{self.name}"

    def source(self, game: str) -> str:
        """The silver table that it is computed from."""
        return game_table(game) if self.over is Over.EACH_GAME else SILVER_EVENTS
