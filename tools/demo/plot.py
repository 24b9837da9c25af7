"""SVG charts: axes, bars, lines and areas, each with a title that is shown on hover."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from xml.etree import ElementTree as ET

WIDTH, HEIGHT = 560, 250
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 12, 40
_TICKS = 4
_ROUND = (1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10)
_THOUSAND, _MILLION = 1_000, 1_000_000
_BAR_ROW, _NAME_WIDTH, _VALUE_WIDTH = 19, 150, 70


class Side(StrEnum):
    """The side of a marker on which its label is; the value is SVG's `text-anchor`."""

    LEFT = "end"
    RIGHT = "start"


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis from 0 to `top`; `marks` (position, text) replace the ticks at round numbers."""

    label: str
    top: float
    marks: tuple[tuple[float, str], ...] = ()

    @property
    def end(self) -> float:
        """The end of the axis: a round number, unless the axis has marks."""
        return self.top if self.marks else nice_top(self.top)

    @property
    def ticks(self) -> tuple[tuple[float, str], ...]:
        """Positions and texts of the ticks."""
        steps = (self.end * step / _TICKS for step in range(_TICKS + 1))
        return self.marks or tuple((value, short(value)) for value in steps)


@dataclass(frozen=True, slots=True)
class LabelledBar:
    """One bar of a list: its name, value and hover title; `rest` of the value is drawn in the second colour."""

    name: str
    value: float
    title: str
    rest: float = 0


class Frame:
    """A chart with two axes from 0; coordinates are in the units of the axes."""

    def __init__(self, label: str, across: Axis, up: Axis) -> None:
        self.svg = picture(label, HEIGHT)
        self._across = across.end
        self._up = up.end
        self._draw_axes(across, up)

    def x(self, value: float) -> float:
        """The x coordinate of a value."""
        return LEFT + value / self._across * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        """The y coordinate of a value."""
        return HEIGHT - BOTTOM - value / self._up * (HEIGHT - TOP - BOTTOM)

    def bar(self, style: str, left: float, right: float, span: tuple[float, float], title: str) -> None:
        """Draw a rectangle from `left` to `right` over the values (low, high) of `span`."""
        low, high = span
        place = {
            "x": self.x(left),
            "y": self.y(high),
            "width": max(self.x(right) - self.x(left), 0.6),
            "height": max(self.y(low) - self.y(high), 0.0),
        }
        _titled(_add(self.svg, "rect", style, **place), title)

    def line(self, style: str, points: Sequence[tuple[float, float]]) -> None:
        """Draw a line through points."""
        _add(self.svg, "polyline", style, points=self._path(points))

    def area(self, style: str, points: Sequence[tuple[float, float]]) -> None:
        """Fill the area below a line."""
        if points:
            closed = [(points[0][0], 0.0), *points, (points[-1][0], 0.0)]
            _add(self.svg, "polygon", style, points=self._path(closed))

    def spots(self, points: Iterable[tuple[float, float, str]]) -> None:
        """Add invisible points (x, y, title) that show their title on hover."""
        for x, y, title in points:
            _titled(_add(self.svg, "circle", "spot", cx=self.x(x), cy=self.y(y), r=6), title)

    def marker(self, value: float, text: str, side: Side) -> None:
        """Draw a vertical line with a label on one side."""
        _add(self.svg, "line", "marker", x1=self.x(value), x2=self.x(value), y1=TOP, y2=self.y(0))
        gap = -5 if side is Side.LEFT else 5
        word = _add(self.svg, "text", "word", x=self.x(value) + gap, y=TOP + 10)
        word.set("text-anchor", side)
        word.text = text

    def _path(self, points: Sequence[tuple[float, float]]) -> str:
        return " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)

    def _draw_axes(self, across: Axis, up: Axis) -> None:
        for value, text in up.ticks:
            _add(self.svg, "line", "grid", x1=LEFT, x2=WIDTH - RIGHT, y1=self.y(value), y2=self.y(value))
            _label(self.svg, LEFT - 6, self.y(value) + 4, text, "end")
        for value, text in across.ticks:
            _label(self.svg, self.x(value), HEIGHT - BOTTOM + 16, text, "middle")
        _label(self.svg, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, across.label, "middle")
        turned = _label(self.svg, 0, 0, up.label, "middle")
        turned.set("transform", f"translate(12 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)")


def bar_list(label: str, bars: Sequence[LabelledBar]) -> ET.Element:
    """Horizontal bars, one below the other, each with its name and value."""
    spoken = ", ".join(f"{bar.name} {bar.value:,.0f}" for bar in bars)
    svg = picture(f"{label}: {spoken}", max(len(bars), 1) * _BAR_ROW + 8)
    most = max((bar.value for bar in bars), default=0) or 1
    for row, bar in enumerate(bars):
        top = 4 + row * _BAR_ROW
        width = max(bar.value / most * (WIDTH - _NAME_WIDTH - _VALUE_WIDTH), 0.6)
        shown = {"y": top + 1, "height": _BAR_ROW - 5, "rx": 2}
        _label(svg, _NAME_WIDTH - 8, top + 12, bar.name, "end")
        _titled(_add(svg, "rect", "a", x=_NAME_WIDTH, width=width, **shown), bar.title)
        if bar.rest:
            rest = width * bar.rest / bar.value
            _titled(_add(svg, "rect", "b", x=_NAME_WIDTH + width - rest, width=rest, **shown), bar.title)
        _label(svg, _NAME_WIDTH + width + 6, top + 12, f"{bar.value:,.0f}", "start")
    return svg


def picture(label: str, height: float) -> ET.Element:
    """An empty picture with a description for screen readers."""
    return ET.Element("svg", {"viewBox": f"0 0 {WIDTH} {height:g}", "role": "img", "aria-label": label})


def nice_top(value: float) -> float:
    """The smallest round number that is at least the value and whose quarters have few digits."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in _ROUND if step * power >= value * (1 - 1e-9))


def short(value: float) -> str:
    """A short text of a number, for an axis."""
    if value >= _MILLION:
        return f"{value / _MILLION:g} M"
    if value >= _THOUSAND:
        return f"{value / _THOUSAND:g} k"
    return f"{value:g}"


def _label(svg: ET.Element, x: float, y: float, text: str, anchor: str) -> ET.Element:
    label = _add(svg, "text", "label", x=x, y=y)
    label.set("text-anchor", anchor)
    label.text = text
    return label


def _titled(shape: ET.Element, title: str) -> None:
    ET.SubElement(shape, "title").text = title


def _add(svg: ET.Element, tag: str, style: str, **attributes: float | str) -> ET.Element:
    written = {key: value if isinstance(value, str) else f"{value:.1f}" for key, value in attributes.items()}
    return ET.SubElement(svg, tag, {"class": style, **written})
