"""What a panel says, as data: a title, what it means, a unit, and what it asks Prometheus."""

from dataclasses import dataclass
from enum import StrEnum

FULL_WIDTH = 24


@dataclass(frozen=True, slots=True)
class Ask:
    """A query to Prometheus, and how its series are called (`{{label}}` stands for a label's value)."""

    expr: str
    legend: str


@dataclass(frozen=True, slots=True)
class Limits:
    """From where on a value is yellow and red; a value that is bad when small has `bad` below `warn`."""

    warn: float
    bad: float

    @property
    def small_is_bad(self) -> bool:
        """Whether the value should be large."""
        return self.bad < self.warn


class Stack(StrEnum):
    """Whether series stand on each other."""

    NONE = "none"
    NORMAL = "normal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """What every panel has; a row is 24 wide."""

    title: str
    description: str
    unit: str
    asks: tuple[Ask, ...]
    limits: Limits | None = None
    width: int = 12
    height: int = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure(Panel):
    """One number as it is now.

    Args:
        words: what to show instead of certain numbers.
    """

    words: tuple[tuple[float, str], ...] = ()
    width: int = 4
    height: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Course(Panel):
    """Numbers over time."""

    stack: Stack = Stack.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars(Panel):
    """Several numbers as they are now, side by side."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: one number per row."""

    name: str
    unit: str
    expr: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows(Panel):
    """A table: a row per value of a label, a column per query. Its asks are made of its columns."""

    columns: tuple[Column, ...]
    label: str
    width: int = FULL_WIDTH
    height: int = 12


def rows(title: str, description: str, label: str, columns: tuple[Column, ...]) -> Rows:
    """A table over the whole width."""
    asks = tuple(Ask(column.expr, column.name) for column in columns)
    return Rows(title=title, description=description, unit=columns[0].unit, asks=asks, columns=columns, label=label)
