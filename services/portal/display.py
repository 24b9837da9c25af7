"""Writes values for the pages: numbers with separators, shares as percentages, times in words, identifiers as text."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import TypeAlias

Format: TypeAlias = Callable[[object], str]

UNKNOWN, NO_VALUE = "unknown", "\u2013"
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_TENTHS_BELOW = 10
_LONGEST_CELL = 200
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(?::(\d\d))?(?:[.]\d+)?(?:Z|[+]00:00| UTC)?")


class ColumnKind(StrEnum):
    """The kind of a result's column, by its name and values."""

    TEXT = "text"
    IDENTIFIER = "identifier"
    NUMBER = "number"
    SHARE = "share"
    MONEY = "money"
    TIME = "time"

    @property
    def is_measure(self) -> bool:
        """True if the values are amounts, which can be drawn."""
        return self not in {ColumnKind.TEXT, ColumnKind.IDENTIFIER}


_SHARE = re.compile(r"^(?:share|conversion|stickiness)$|_share$|^share_of_|_change$")
_MONEY = re.compile(r"bookings|^arp(?:dau|pu)$")
_IDENTIFIER = re.compile(r"(?:^|_)id$|version$|^level$|^hour_of_day$|^from_minute$")
_SECONDS, _MINUTES = re.compile(r"(?:^|_)seconds(?:_|$)"), re.compile(r"(?:^|_)minutes(?:_|$)")


@dataclass(frozen=True, slots=True)
class ColumnStyle:
    """The kind of a column, and how its values are written."""

    kind: ColumnKind
    text: Format


def number(value: float | Decimal | None, digits: int = 0) -> str:
    """Return a number with thousands separators; None is unknown."""
    return UNKNOWN if value is None else f"{value:,.{digits}f}"


def amount(value: float | Decimal) -> str:
    """Return a number with thousands separators and as many digits as a reader needs."""
    if value == round(value):
        return f"{value:,.0f}"
    size = abs(float(value))
    return f"{value:,.1f}" if size >= 100 else f"{value:,.3g}" if size >= 1 else f"{value:.3g}"  # noqa: PLR2004 # three digits


def percent(share: float | Decimal) -> str:
    """Return a share as a percentage."""
    return f"{share:.1%}"


def money(value: float | Decimal) -> str:
    """Return an amount of US dollars."""
    return f"{'-' if value < 0 else ''}${abs(value):,.2f}"


def short_money(value: float | Decimal) -> str:
    """Return an amount of US dollars; without cents from 100 dollars on."""
    return f"${value:,.0f}" if value >= 100 else money(value)  # noqa: PLR2004 # as the docstring says


def duration(seconds: float | Decimal | None) -> str:
    """Return a time in words with at most two units, such as `17 min 48 s`; None is unknown."""
    if seconds is None:
        return UNKNOWN
    if seconds < 0:
        return f"-{duration(-seconds)}"
    if seconds < _TENTHS_BELOW:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for size, name, part_size, part_name in (
        (_DAY, "d", _HOUR, "h"),
        (_HOUR, "h", _MINUTE, "min"),
        (_MINUTE, "min", 1, "s"),
    ):
        if whole >= size:
            rest = whole % size // part_size
            return f"{whole // size:,} {name}" + (f" {rest} {part_name}" if rest else "")
    return f"{whole} s"


def text(value: object) -> str:
    """Return any value as a cell shows it; the text is not escaped."""
    if value is None:
        return NO_VALUE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float | Decimal):
        return str(value)
    if isinstance(value, datetime):
        return _moment(value.isoformat())
    if isinstance(value, date):
        return value.isoformat()
    written = _moment(str(value))
    return written if len(written) <= _LONGEST_CELL else f"{written[:_LONGEST_CELL]}…"


def style_of(name: str, values: Sequence[object]) -> ColumnStyle:
    """Return the style of a column: text, unless all its values are numbers."""
    if not all(map(is_number_or_none, values)) or all(value is None for value in values):
        return ColumnStyle(ColumnKind.TEXT, text)
    if _IDENTIFIER.search(name):
        return ColumnStyle(ColumnKind.IDENTIFIER, text)
    for pattern, kind, write in (
        (_SHARE, ColumnKind.SHARE, percent),
        (_MONEY, ColumnKind.MONEY, money),
        (_SECONDS, ColumnKind.TIME, duration),
        (_MINUTES, ColumnKind.TIME, _minutes),
    ):
        if pattern.search(name):
            return ColumnStyle(kind, _or_none(write))
    return ColumnStyle(ColumnKind.NUMBER, _or_none(amount))


def is_number_or_none(value: object) -> bool:
    """Return True for a number, which a truth value is not, and for None."""
    return value is None or (isinstance(value, int | float | Decimal) and not isinstance(value, bool))


def _minutes(value: float | Decimal) -> str:
    return duration(float(value) * _MINUTE)


def _or_none(write: Callable[[float], str]) -> Format:
    def written(value: object) -> str:
        if not isinstance(value, int | float | Decimal) or value != value:  # noqa: PLR0124 # NaN
            return NO_VALUE
        if abs(value) == math.inf:
            return "∞" if value > 0 else "-∞"
        return write(float(value) if isinstance(value, Decimal) else value)

    return written


def _moment(written: str) -> str:
    """Return a time without its fraction, and without seconds where they are zero; other texts unchanged."""
    found = _MOMENT.fullmatch(written)
    if not found:
        return written
    day, minute, second = found.groups()
    return f"{day} {minute}" if second in {None, "00"} else f"{day} {minute}:{second}"
