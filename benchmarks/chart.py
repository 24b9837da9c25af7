"""A bar chart as an SVG file that can be read on a light and on a dark page."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _LABELS, _VALUES = 760, 236, 76
_ROW, _BAR, _TOP, _BOTTOM = 34, 18, 64, 34
_MOST_TICKS = 6

_STYLE = """
text { font: 13px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328; }
.title { font-size: 15px; font-weight: 600; }
.note { font-size: 12px; fill: #59636e; }
.grid { stroke: #d1d9e0; stroke-width: 1; }
.range { stroke: #1f2328; stroke-width: 1.5; }
.peer { fill: #8c959f; }
.ours { fill: #0969da; }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc; }
  .note { fill: #9198a1; }
  .grid { stroke: #3d444d; }
  .range { stroke: #f0f6fc; }
  .peer { fill: #656c76; }
  .ours { fill: #4493f8; }
}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartBar:
    """One row: a median with the least and greatest value; `kind` is "ours" or "peer"."""

    label: str
    value: float
    least: float
    greatest: float
    kind: str


def bar_chart(title: str, note: str, bars: Sequence[ChartBar]) -> str:
    """Draw horizontal bars on one scale from zero."""
    step = _tick_step(max(bar.greatest for bar in bars))
    ticks = [step * number for number in range(int(max(bar.greatest for bar in bars) // step) + 2)]
    scale = (_WIDTH - _LABELS - _VALUES) / ticks[-1]
    height = _TOP + _ROW * len(bars) + _BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'role="img" aria-label="{escape(title)}">',
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}</style>",
        f'<text class="title" x="8" y="22">{escape(title)}</text>',
        f'<text class="note" x="8" y="42">{escape(note)}</text>',
        *(_tick(_LABELS + tick * scale, height - _BOTTOM, tick) for tick in ticks),
        *(_bar(_TOP + _ROW * row, bar, scale) for row, bar in enumerate(bars)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _tick_step(greatest: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that gives at most `_MOST_TICKS` ticks."""
    power = 1.0
    while True:
        for factor in (1, 2, 5):
            if greatest / (factor * power) <= _MOST_TICKS:
                return factor * power
        power *= 10


def _tick(x: float, bottom: int, value: float) -> str:
    label = f"{value / 1000:,.0f}k" if value else "0"
    return (
        f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 8}" y2="{bottom}"/>'
        f'<text class="note" x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{label}</text>'
    )


def _bar(top: int, bar: ChartBar, scale: float) -> str:
    middle = top + _BAR / 2
    least, greatest = _LABELS + bar.least * scale, _LABELS + bar.greatest * scale
    return (
        f'<text x="{_LABELS - 10}" y="{middle + 4.5}" text-anchor="end">{escape(bar.label)}</text>'
        f'<rect class="{bar.kind}" x="{_LABELS}" y="{top}" width="{bar.value * scale:.1f}" height="{_BAR}" rx="2"/>'
        f'<line class="range" x1="{least:.1f}" x2="{greatest:.1f}" y1="{middle}" y2="{middle}"/>'
        f'<text x="{greatest + 8:.1f}" y="{middle + 4.5}">{bar.value:,.0f}</text>'
    )
