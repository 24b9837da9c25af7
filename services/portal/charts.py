"""Charts as SVG, drawn by the portal: they need no script, and have a title and a description for screen readers.

Colours are classes of `assets/portal.css`, since a page's policy allows no style in its elements.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from markupsafe import Markup

# A bar from left to right with its height and title; a point with its title.
Bar: TypeAlias = tuple[float, float, float, str]
Point: TypeAlias = tuple[float, float, str]
Write: TypeAlias = Callable[[float], str]

SERIES = 6
_WIDTH, _HEIGHT = 480, 276
# Room for texts of 18 px, which are legible where the chart is drawn at two thirds of its size.
_LEFT, _RIGHT, _TOP, _BOTTOM = 82, 32, 36, 50
_AXIS_NAME = 20
_TICKS = 4
_ROUND = (1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10)
# An axis of smaller numbers would end at zero: floats have no power of ten below them.
_NEAR_ZERO = 1e-100
_THOUSAND, _MILLION = 1_000, 1_000_000
_SPARK_WIDTH, _SPARK_HEIGHT = 120, 28
_NAMES, _VALUES, _ROW, _GAP = 188, 100, 26, 8
# Letters are of different widths; those of most names fit in.
_LETTERS = 17
# The width of a letter, on average.
_LETTER, _MOST_LABELS = 10, 5
_NO_LETTERS = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Line:
    """A line through points, with the name that the legend shows."""

    name: str
    points: Sequence[Point]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """Bars and lines over two axes, which end at round numbers; the upper axis begins below 0 if a value does.

    Attributes:
        title: the name of the chart.
        description: its content in a sentence, for readers who do not see it.
        across, up: the names of the axes.
        end: the right end of the lower axis.
        labels: the texts along the lower axis, one for each whole number from 0 on; without them, numbers.
        write: writes a value of the upper axis.
    """

    title: str
    description: str
    across: str
    up: str
    end: float
    bars: Sequence[Bar] = ()
    lines: Sequence[Line] = ()
    labels: Sequence[str] = ()
    write: Write | None = None


@dataclass(frozen=True, slots=True)
class Amount:
    """A row of a bar chart; `address` leads to a page about it."""

    name: str
    value: float
    address: str = ""


def plot(chart: Plot) -> Markup:
    """Draw bars and lines over two axes."""
    heights = [bar[2] for bar in chart.bars] + [point[1] for line in chart.lines for point in line.points]
    right, top = chart.end if chart.labels else nice_top(chart.end), nice_top(max(heights, default=0))
    least = min(heights, default=0)
    low = -nice_top(-least) if least < 0 else 0.0

    def x(value: float) -> float:
        return _LEFT + value / (right or 1) * (_WIDTH - _LEFT - _RIGHT)

    def y(value: float) -> float:
        return _HEIGHT - _BOTTOM - (value - low) / (top - low) * (_HEIGHT - _TOP - _BOTTOM)

    write = chart.write or short
    parts = [_grid(y, (low, top), write), *_below(chart, x, right)]
    parts += [_bar(bar, x, y) for bar in chart.bars]
    parts += [_line(place, line, x, y) for place, line in enumerate(chart.lines)]
    height = _HEIGHT if chart.across else _HEIGHT - _AXIS_NAME
    return _svg((_WIDTH, height), chart.title, chart.description, parts)


def bars(title: str, description: str, amounts: Sequence[Amount], write: Write) -> Markup:
    """Draw one horizontal bar for each amount, with its name and value; bars of negative values lead to the left."""
    least, most = min((each.value for each in amounts), default=0), max((each.value for each in amounts), default=0)
    least, most = min(least, 0), max(most, 0)
    room = _WIDTH - _NAMES - _VALUES
    scale = room / ((most - least) or 1)
    zero = _NAMES - least * scale
    parts = []
    for place, each in enumerate(amounts):
        top, middle = place * (_ROW + _GAP), place * (_ROW + _GAP) + _ROW / 2 + 6
        begin, width = min(zero, zero + each.value * scale), max(abs(each.value) * scale, 1)
        name = Markup('<text x="{}" y="{:.0f}" text-anchor="end">{}</text>').format(
            _NAMES - 8, middle, _shortened(each.name)
        )
        parts.append(Markup('<a href="{}">{}</a>').format(each.address, name) if each.address else name)
        parts.append(
            Markup(
                '<rect class="bar" x="{:.1f}" y="{}" width="{:.1f}" height="{}" rx="2"><title>{}</title></rect>'
            ).format(begin, top, width, _ROW, f"{each.name}: {write(each.value)}")
        )
        parts.append(
            Markup('<text x="{:.1f}" y="{:.0f}">{}</text>').format(
                zero + max(each.value, 0) * scale + 6, middle, write(each.value)
            )
        )
    return _svg((_WIDTH, max(len(amounts) * (_ROW + _GAP), 1)), title, description, parts)


def sparkline(values: Sequence[float], title: str, style: str = "spark") -> Markup:
    """Draw the course of a value as a small line without axes; nothing without values."""
    if not values:
        return Markup("")
    least, most = min(0.0, *values), max(values)
    step = (_SPARK_WIDTH - 6) / max(len(values) - 1, 1)

    def place(index: int, value: float) -> tuple[float, float]:
        return 3 + index * step, 3 + (_SPARK_HEIGHT - 6) * (1 - (value - least) / ((most - least) or 1))

    points = [place(index, value) for index, value in enumerate(values)]
    x, y = points[-1]
    path = " ".join(f"{across:.1f},{up:.1f}" for across, up in points)
    return Markup(
        '<svg class="{}" role="img" aria-label="{}" viewBox="0 0 {} {}" preserveAspectRatio="xMinYMid">'
        '<polyline points="{}"/><circle cx="{:.1f}" cy="{:.1f}" r="2.5"/></svg>'
    ).format(style, title, _SPARK_WIDTH, _SPARK_HEIGHT, path, x, y)


def interval(low: float, value: float, high: float, end: float, title: str) -> Markup:
    """Draw an interval as a horizontal bar with its value, and a line at 0; the chart ends at `-end` and `end`."""

    def x(place: float) -> float:
        return 2 + (min(max(place / (end or 1), -1), 1) + 1) / 2 * (_SPARK_WIDTH - 4)

    return Markup(
        '<svg class="interval" role="img" aria-label="{}" viewBox="0 0 {} {}">'
        '<rect x="{:.1f}" y="9" width="{:.1f}" height="10" rx="2"/>'
        '<line x1="{:.1f}" x2="{:.1f}" y1="2" y2="26"/><circle cx="{:.1f}" cy="14" r="3"/></svg>'
    ).format(title, _SPARK_WIDTH, _SPARK_HEIGHT, x(low), max(x(high) - x(low), 1), x(0), x(0), x(value))


def nice_top(value: float) -> float:
    """Return the smallest round number that is at least the value and whose quarters have few digits; 1 for zero."""
    if value < _NEAR_ZERO:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in _ROUND if step * power >= value * (1 - 1e-9))


def short(value: float) -> str:
    """Return a short text of a number, for an axis."""
    if abs(value) >= _MILLION:
        return f"{value / _MILLION:g} M"
    return f"{value / _THOUSAND:g} k" if abs(value) >= _THOUSAND else f"{value:g}"


def _svg(size: tuple[float, float], title: str, description: str, parts: Sequence[Markup]) -> Markup:
    name = f"chart-{_NO_LETTERS.sub('-', title.lower()).strip('-')}"
    # A picture hides its content from screen readers, and a link must not be hidden.
    role = "group" if any("<a href" in part for part in parts) else "img"
    return Markup(
        '<svg class="chart" role="{role}" viewBox="0 0 {width} {height}" aria-labelledby="{name}-title {name}-text">'
        '<title id="{name}-title">{title}</title><desc id="{name}-text">{text}</desc>{content}</svg>'
    ).format(
        role=role,
        width=size[0],
        height=size[1],
        name=name,
        title=title,
        text=description,
        content=Markup("").join(parts),
    )


def _grid(y: Callable[[float], float], ends: tuple[float, float], write: Write) -> Markup:
    low, top = ends
    rows = []
    for step in range(_TICKS + 1):
        value = low + (top - low) * step / _TICKS
        height = y(value)
        rows.append(
            Markup('<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>').format(
                _LEFT, _WIDTH - _RIGHT, height, height
            )
            + _text(_LEFT - 8, height + 6, write(value), "end")
        )
    return Markup("").join(rows)


def _below(chart: Plot, x: Callable[[float], float], right: float) -> list[Markup]:
    """The texts along the lower axis: at most a few, so that they don't overlap."""
    under = _HEIGHT - _BOTTOM + 24
    if chart.labels:
        width = max(map(len, chart.labels)) * _LETTER
        space = int((_WIDTH - _LEFT - _RIGHT) / (width + _LETTER))
        every = math.ceil(len(chart.labels) / max(min(space, _MOST_LABELS), 1))
        half = 0.5 if chart.bars else 0.0
        texts = [
            _text(min(x(place + half), _WIDTH - width / 2), under, chart.labels[place], "middle")
            for place in range(0, len(chart.labels), every)
        ]
    else:
        texts = [
            _text(x(right * step / _TICKS), under, short(right * step / _TICKS), "middle") for step in range(_TICKS + 1)
        ]
    if chart.across:
        texts.append(_text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 4, chart.across, "middle"))
    if chart.up:
        texts.append(_text(2, 16, chart.up, "start"))
    return texts


def _bar(bar: Bar, x: Callable[[float], float], y: Callable[[float], float]) -> Markup:
    begin, stop, value, title = bar
    return Markup(
        '<rect class="bar" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{}</title></rect>'
    ).format(x(begin), y(max(value, 0)), max(x(stop) - x(begin), 0.6), abs(y(0) - y(value)), title)


def _line(place: int, line: Line, x: Callable[[float], float], y: Callable[[float], float]) -> Markup:
    style = f"series-{place % SERIES + 1}"
    path = " ".join(f"{x(across):.1f},{y(up):.1f}" for across, up, _ in line.points)
    dots = Markup("").join(
        Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="4"><title>{}</title></circle>').format(
            style, x(across), y(up), title
        )
        for across, up, title in line.points
    )
    return Markup('<polyline class="{}" points="{}"/>').format(style, path) + dots


def _text(x: float, y: float, text: str, anchor: str) -> Markup:
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(x, y, anchor, text)


def _shortened(name: str) -> str:
    return name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}…"
