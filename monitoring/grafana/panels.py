"""Panels as data: title, description, unit and Prometheus queries, without any of Grafana's formats."""

import re
from dataclasses import dataclass
from enum import StrEnum

from grafana_foundation_sdk.models import units

FULL_WIDTH = 24
# Series that the legend of a panel of the default height shows.
MOST_SERIES = 10
# A duration of minutes to days, as 1 d 02:03:04. `units.Seconds` would show 100 s as "1.67 mins".
DURATION = units.DurationInDaysHoursMinutesSeconds

_RUNBOOK = re.compile(r"\brunbooks? (\w+)")


@dataclass(frozen=True, slots=True)
class Query:
    """A Prometheus query and the legend of its series; `{{label}}` stands for a label's value."""

    expr: str
    legend: str


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The values from which on a panel is yellow and red; if small values are bad, `bad` is below `warn`."""

    warn: float
    bad: float

    @property
    def small_is_bad(self) -> bool:
        """True if small values are bad."""
        return self.bad < self.warn


class Rating(StrEnum):
    """The rating of a value."""

    CALM = "calm"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Word:
    """The text that a panel shows instead of a value."""

    value: float
    text: str
    rating: Rating = Rating.CALM


class Stack(StrEnum):
    """The stacking of the series of a time series panel."""

    NONE = "none"
    NORMAL = "normal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A panel; width and height in Grafana's grid units, 24 to a row.

    Args:
        empty: what the panel shows if its queries have no result.
    """

    title: str
    description: str
    unit: str
    queries: tuple[Query, ...]
    thresholds: Thresholds | None = None
    words: tuple[Word, ...] = ()
    empty: str = "no data"
    width: int = 12
    height: int = 8

    @property
    def runbooks(self) -> tuple[str, ...]:
        """The runbooks that the description names."""
        return tuple(_RUNBOOK.findall(self.description))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stat(Panel):
    """The current value of one number."""

    width: int = 4
    height: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSeries(Panel):
    """Series over time."""

    stack: Stack = Stack.NONE
    height: int = 9

    @property
    def soft_max(self) -> float:
        """The least that the axis shows, so that zeros are not magnified and the limit is visible."""
        if self.thresholds:
            return max(self.thresholds.warn, self.thresholds.bad)
        return {units.BytesIEC: 2.0**20, units.BytesPerSecondIEC: 1024.0, DURATION: 60.0}.get(self.unit, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class BarGauge(Panel):
    """The current values of several series, as horizontal bars."""

    height: int = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class StateTimeline(Panel):
    """The states of several series over time, one row each; `words` names and colours them."""


@dataclass(frozen=True, slots=True)
class Link:
    """A link from a table's row: to a dashboard with the row's value selected, or to the alert's runbook.

    Args:
        page: the dashboard's uid; "" for the runbook.
        variable: the dashboard's variable.
        template: the variable's value, in which `{}` stands for the row's label.
    """

    title: str
    page: str = ""
    variable: str = ""
    template: str = "{}"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: one number per row.

    Args:
        width: pixels; by default all columns have the same.
    """

    name: str
    unit: str
    expr: str
    thresholds: Thresholds | None = None
    words: tuple[Word, ...] = ()
    width: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Panel):
    """A table of current values: one row per value of `label`, one column per query.

    Args:
        label: the label that identifies a row.
        more_labels: further labels, shown as columns.
        sort: the column that sorts the rows.
        smallest_first: sort the smallest value first instead of the largest.
        links: links of the row's label.
    """

    unit: str = ""
    queries: tuple[Query, ...] = ()
    columns: tuple[Column, ...]
    label: str
    more_labels: tuple[str, ...] = ()
    sort: str
    smallest_first: bool = False
    links: tuple[Link, ...] = ()
    width: int = FULL_WIDTH
    height: int = 12

    def __post_init__(self) -> None:
        """Take unit and queries from the columns."""
        object.__setattr__(self, "unit", self.columns[0].unit)
        object.__setattr__(self, "queries", tuple(Query(column.expr, column.name) for column in self.columns))
