"""Panels as data: title, description, unit and Prometheus queries, without any of Grafana's formats."""

from dataclasses import dataclass
from enum import StrEnum

FULL_WIDTH = 24


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
        """Whether small values are bad."""
        return self.bad < self.warn


class Stack(StrEnum):
    """Whether the series of a time series panel are stacked."""

    NONE = "none"
    NORMAL = "normal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A panel; width and height in Grafana's grid units, of which a row has 24."""

    title: str
    description: str
    unit: str
    queries: tuple[Query, ...]
    thresholds: Thresholds | None = None
    width: int = 12
    height: int = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Stat(Panel):
    """The current value of one number.

    Args:
        words: (value, text) pairs: the text to show instead of the value.
    """

    words: tuple[tuple[float, str], ...] = ()
    width: int = 4
    height: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSeries(Panel):
    """Series over time."""

    stack: Stack = Stack.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class BarGauge(Panel):
    """The current values of several series, as horizontal bars."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: one number per row."""

    name: str
    unit: str
    expr: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Panel):
    """A table of current values: one row per value of `label`, one column per query."""

    columns: tuple[Column, ...]
    label: str
    width: int = FULL_WIDTH
    height: int = 12


def table(title: str, description: str, label: str, columns: tuple[Column, ...]) -> Table:
    """A table over the whole width, with the queries of its columns."""
    queries = tuple(Query(column.expr, column.name) for column in columns)
    return Table(
        title=title, description=description, unit=columns[0].unit, queries=queries, columns=columns, label=label
    )
