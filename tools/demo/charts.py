"""The charts of a run as SVG; each bar and point has a title that is shown on hover."""

import math
from collections.abc import Callable, Sequence
from html import escape
from itertools import pairwise
from typing import TypeAlias

from tools.demo.figures import BatchFigures, RunSample, Summary

Chart: TypeAlias = Callable[[Summary], str]
# A bar from left to right with its height and title; a point with its title.
Bar: TypeAlias = tuple[float, float, float, str]
Point: TypeAlias = tuple[float, float, str]

_WIDTH, _HEIGHT = 560, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 14, 12, 40
_TICKS = 4
_ROUND = (1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10)
_THOUSAND, _MILLION = 1_000, 1_000_000
_LEAST_SECONDS = 0.5
_START = "seconds since the start"


def throughput(summary: Summary) -> str:
    """Return records per second: a bar for each batch, as wide as the batch was long, and a line for the simulator."""
    taken = [(batch, _seconds(batch)) for batch in summary.batches]
    bars = [
        (batch.ended - seconds, batch.ended, batch.records / seconds,
         f"batch {batch.batch}: {batch.records:,} records in {seconds:.2f} s")
        for batch, seconds in taken
    ]  # fmt: skip
    sent = [(seconds, rate, f"{seconds:.0f} s: {rate:,.0f} records/s sent") for seconds, rate in _sent(summary.samples)]
    return _chart("Records per second over time", (_START, "records/s"), _end(summary), bars, sent)


def lag(summary: Summary) -> str:
    """Return records in Kafka that were not in the tables yet."""
    points = [
        (each.seconds, float(each.lag), f"{each.seconds:.0f} s: {each.lag:,} records behind")
        for each in summary.samples
    ]
    return _chart("Lag over time", (_START, "records behind"), _end(summary), (), points)


def freshness(summary: Summary) -> str:
    """Return rows by the seconds from the event's arrival to its commit."""
    width, rows = summary.histogram.bin_seconds, summary.histogram.rows
    bars = [
        (place * width, (place + 0.9) * width, float(count), f"{place * width:g} s and more: {count:,} rows")
        for place, count in enumerate(rows)
    ]
    across = "seconds from arrival to commit"
    return _chart("Freshness of the rows", (across, "rows"), width * len(rows), bars, ())


def _chart(label: str, axes: tuple[str, str], end: float, bars: Sequence[Bar], points: Sequence[Point]) -> str:
    """Draw bars and a line through points; both axes begin at 0 and end at a round number."""
    right, top = nice_top(end), nice_top(max([bar[2] for bar in bars] + [point[1] for point in points], default=0))

    def x(value: float) -> float:
        return _LEFT + value / right * (_WIDTH - _LEFT - _RIGHT)

    def y(value: float) -> float:
        return _HEIGHT - _BOTTOM - value / top * (_HEIGHT - _TOP - _BOTTOM)

    parts = []
    for step in range(_TICKS + 1):
        across, up = right * step / _TICKS, top * step / _TICKS
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(up):.1f}" y2="{y(up):.1f}"/>')
        parts.append(_text(_LEFT - 6, y(up) + 4, short(up), "end"))
        parts.append(_text(x(across), _HEIGHT - _BOTTOM + 16, short(across), "middle"))
    for begin, stop, value, title in bars:
        size = f'width="{max(x(stop) - x(begin), 0.6):.1f}" height="{y(0) - y(value):.1f}"'
        parts.append(f'<rect x="{x(begin):.1f}" y="{y(value):.1f}" {size}><title>{escape(title)}</title></rect>')
    path = " ".join(f"{x(across):.1f},{y(up):.1f}" for across, up, _ in points)
    parts.append(f'<polyline points="{path}"/>')
    for across, up, title in points:
        parts.append(f'<circle cx="{x(across):.1f}" cy="{y(up):.1f}" r="6"><title>{escape(title)}</title></circle>')
    parts.append(_text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 6, axes[0], "middle"))
    turned = f"translate(12 {(_TOP + _HEIGHT - _BOTTOM) / 2}) rotate(-90)"
    parts.append(f'<text text-anchor="middle" transform="{turned}">{escape(axes[1])}</text>')
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def nice_top(value: float) -> float:
    """Return the smallest round number that is at least the value and whose quarters have few digits."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in _ROUND if step * power >= value * (1 - 1e-9))


def short(value: float) -> str:
    """Return a short text of a number, for an axis."""
    if value >= _MILLION:
        return f"{value / _MILLION:g} M"
    return f"{value / _THOUSAND:g} k" if value >= _THOUSAND else f"{value:g}"


def _sent(samples: tuple[RunSample, ...]) -> list[tuple[float, float]]:
    """Records per second into Kafka between two samples; samples that are close together are left out."""
    rates = [(samples[0].seconds, 0.0)]
    for before, after in pairwise(samples):
        seconds = after.seconds - before.seconds
        if seconds >= _LEAST_SECONDS:
            rates.append((after.seconds, (after.produced - before.produced) / seconds))
    return rates


def _seconds(batch: BatchFigures) -> float:
    return batch.decide_seconds + batch.commit_seconds


def _end(summary: Summary) -> float:
    return max(summary.times.last_commit, summary.samples[-1].seconds)


ALL = (throughput, lag, freshness)
