"""Gold aggregates in the games contract: SQL over a silver table, and how the gold table is refreshed."""

from datetime import timedelta
from enum import StrEnum
from typing import Annotated

import msgspec

from gamelake.model.naming import GOLD, SILVER_EVENTS, game_table, gold_table

_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}

ColumnName = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
# A column of silver, or a field of one: load_ms, resource.item.
ColumnPath = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]{0,62}(\.[a-z][a-z0-9_]{0,62}){0,3}$")]
Interval = Annotated[str, msgspec.Meta(pattern=r"^[1-9][0-9]{0,4} (second|minute|hour|day)s?$")]


def interval_of(text: str) -> timedelta:
    """Return the time that an `Interval` states.

    Example:
        >>> interval_of("30 minutes")
        datetime.timedelta(seconds=1800)
    """
    number, unit = text.split()
    return timedelta(seconds=int(number) * _UNITS[unit.removesuffix("s")])


class Refresh(StrEnum):
    """The way to refresh a gold table: by merging changes, or by computing each changed partition again."""

    MERGE = "merge"
    PARTITION = "partition"


class Over(StrEnum):
    """The source of an aggregate: each game's events, with one gold table per game, or all games' events in one."""

    EACH_GAME = "each_game"
    ALL_GAMES = "all_games"


class MetricColumn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A column that has a metric of the metrics contract."""

    metric: ColumnName


class AggregateSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One gold table per game, or one of all games: metrics or SQL expressions over silver, by column.

    Attributes:
        group_by: the columns that identify a row.
        keys: those of them that silver lacks, as SQL expressions over one event.
        where: an SQL condition over one event; events for which it isn't true are left out.
        requires: the columns of a game's silver table, or fields of its columns, without which the game has no rows
            in the aggregate.
    """

    name: Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]{0,47}$")]
    group_by: Annotated[tuple[ColumnName, ...], msgspec.Meta(min_length=1)]
    columns: Annotated[dict[ColumnName, str | MetricColumn], msgspec.Meta(min_length=1)]
    refresh: Refresh
    keys: dict[ColumnName, str] = {}
    where: str = ""
    requires: tuple[ColumnPath, ...] = ()
    over: Over = Over.EACH_GAME
    every: Interval = "1 minute"
    description: str = ""
    descriptions: dict[ColumnName, str] = {}

    @property
    def sql(self) -> dict[str, str]:
        """The SQL expression of each column, once `load_gold` has put those of metrics in place."""
        expressions = {name: column for name, column in self.columns.items() if isinstance(column, str)}
        if len(expressions) < len(self.columns):
            raise TypeError(f"'{self.name}' was read without its metrics: use load_gold")
        return expressions

    @property
    def interval(self) -> timedelta:
        """The time between two refreshes of the table."""
        return interval_of(self.every)

    def table(self, game: str) -> str:
        """Return the table of a game, or that of all games, relative to the lakehouse."""
        return gold_table(game, self.name) if self.over is Over.EACH_GAME else f"{GOLD}/{self.name}"

    def source(self, game: str) -> str:
        """Return the silver table that it is computed from."""
        return game_table(game) if self.over is Over.EACH_GAME else SILVER_EVENTS
