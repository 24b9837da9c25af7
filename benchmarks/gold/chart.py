"""How the time of a refresh grows with the table, as a picture."""

from pathlib import Path

from benchmarks.gold.results import GoldResults
from benchmarks.gold.suite import HISTORY, PLAYERS

_NAMES = {HISTORY: "history, the same players", PLAYERS: "players too"}
_COLOURS = {HISTORY: "#0969da", PLAYERS: "#8c959f"}


def draw(results: GoldResults, file: Path) -> None:
    """Write the chart as SVG."""
    import matplotlib as mpl  # noqa: PLC0415 # half a second, and only a whole run draws

    mpl.use("svg")
    # The same figures give the same file.
    mpl.rcParams["svg.hashsalt"] = "gamelake"
    from matplotlib import pyplot  # noqa: PLC0415 # after the line above

    figure, axes = pyplot.subplots(figsize=(7.6, 4.2), layout="constrained")
    for grown, name in _NAMES.items():
        found = results.of(grown)
        axes.plot(
            [each.factor for each in found],
            [each.median for each in found],
            "o-",
            color=_COLOURS[grown],
            label=f"{name}: slope {results.slope(grown):.2f}",
        )
    axes.set(xscale="log", yscale="log", xlabel="times the table", ylabel="seconds of a refresh")
    axes.set_title(f"{results.new_rows // results.tables:,} new rows into one gold table", loc="left")
    axes.grid(visible=True, which="major", color="#d1d9e0")
    axes.legend(frameon=False)
    figure.savefig(file, metadata={"Date": None})
    pyplot.close(figure)
