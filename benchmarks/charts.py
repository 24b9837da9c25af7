"""Charts of results as SVG files; the same figures give the same file."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

_OURS, _GREY, _GRID = "#0969da", "#8c959f", "#d1d9e0"


def bar_chart(file: Path, title: str, unit: str, values: Mapping[str, Sequence[float]], ours: str = "") -> None:
    """Draw a bar with the median for each subject, and a line from the least to the greatest value.

    Args:
        file: to write.
        title: of the chart.
        unit: of the values.
        values: by subject.
        ours: begins the names of the subjects that are not alternatives.
    """
    middles = [median(each) for each in values.values()]
    edges = [[middle - min(each) for middle, each in zip(middles, values.values(), strict=True)],
             [max(each) - middle for middle, each in zip(middles, values.values(), strict=True)]]  # fmt: skip
    colours = [_OURS if name.startswith(ours) else _GREY for name in values]
    with _axes(file, title, 0.28 * len(values) + 1.2) as axes:
        axes.barh(list(values), middles, xerr=edges, color=colours, ecolor="#1f2328", error_kw={"linewidth": 1})
        axes.invert_yaxis()
        axes.set(xlabel=unit, xlim=(0, None))
        axes.grid(visible=True, axis="x", color=_GRID)
        axes.set_axisbelow(True)


def line_chart(
    file: Path, title: str, axes_labels: tuple[str, str], lines: Mapping[str, Mapping[float, float]], scale: str
) -> None:
    """Draw a line for each subject.

    Args:
        file: to write.
        title: of the chart.
        axes_labels: of x and y.
        lines: by subject: y by x.
        scale: of both axes: `linear` from zero, or `log`.
    """
    with _axes(file, title, 4.2) as axes:
        for name, points in lines.items():
            axes.plot(list(points), list(points.values()), "o-", label=name)
        axes.set(xscale=scale, yscale=scale, xlabel=axes_labels[0], ylabel=axes_labels[1])
        if scale == "linear":
            axes.set(ylim=(0, None))
        axes.grid(visible=True, which="major", color=_GRID)
        axes.legend(frameon=False)


@contextmanager
def _axes(file: Path, title: str, height: float) -> Iterator[Any]:
    """Give axes to draw on; write the file at the end of the block."""
    import matplotlib as mpl  # noqa: PLC0415 # half a second, and only a whole run draws

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "gamelake"
    from matplotlib import pyplot  # noqa: PLC0415 # after the line above

    figure, axes = pyplot.subplots(figsize=(7.6, height), layout="constrained")
    axes.set_title(title, loc="left")
    yield axes
    figure.savefig(file, metadata={"Date": None})
    pyplot.close(figure)
