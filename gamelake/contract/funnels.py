"""Funnels (`sql/views/funnels.yaml`): steps that players or sessions take in order, within a time."""

from datetime import timedelta
from enum import StrEnum
from typing import Annotated

import msgspec

from gamelake.contract.aggregates import Interval, interval_of

_Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]{0,47}$")]
# It becomes part of a statement.
_EventName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_.:-]{1,128}$")]


class FunnelUnit(StrEnum):
    """Units of a funnel: each takes its steps on its own."""

    PLAYER = "player"
    SESSION = "session"


class FunnelStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A step: an event of this name, for which the condition is true.

    Attributes:
        name: the step's name.
        event: the event's name.
        where: a condition over the event's columns, in Trino's SQL; empty if every event counts.
    """

    name: _Name
    event: _EventName
    where: Annotated[str, msgspec.Meta(max_length=1_000)] = ""


class FunnelSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A funnel, which becomes the view `gold.funnel_<name>`.

    Attributes:
        name: the funnel's name.
        description: the view's comment.
        by: what takes the steps.
        within: the time after the first step in which all others must follow.
        steps: the steps, in order.
        game: the game whose own table has the events; empty for all games, over `silver.game_events`.
    """

    name: _Name
    description: str
    by: FunnelUnit
    within: Interval
    steps: Annotated[tuple[FunnelStep, ...], msgspec.Meta(min_length=2, max_length=20)]
    game: str = ""

    @property
    def window(self) -> timedelta:
        """The time from the first step in which the last one counts."""
        return interval_of(self.within)


class FunnelsContract(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole of `funnels.yaml`."""

    funnels: tuple[FunnelSpec, ...]
