"""Writes the results of the gold benchmark into docs/performance.md, with a chart."""

from pathlib import Path
from statistics import median

from benchmarks.gold.results import GoldResults
from benchmarks.gold.suite import HISTORY, PLAYERS
from benchmarks.report import put_between_markers, table
from benchmarks.targets import TargetVerdict

_WANTED_SECONDS, _WANTED_TIMES, _WANTED_SLOPE = 10.0, 10.0, 0.1
_NAMES = {HISTORY: "history, the same players", PLAYERS: "players too"}
_COLOURS = {HISTORY: "#0969da", PLAYERS: "#8c959f"}


def write_report(results: GoldResults, docs: Path) -> None:
    """Write the tables between the document's markers, and draw the chart.

    Raises:
        MarkersMissingError: the document has no markers.
    """
    draw(results, docs / "gold.svg")
    put_between_markers(
        docs / "performance.md", "measured of gold", [_circumstances(results), summary(results), _sizes(results)]
    )


def summary(results: GoldResults) -> str:
    """The targets and the measured figures."""
    seconds = [each.ours for each in results.races]
    times = [each.spark / each.ours for each in results.races]
    tables = f"{results.tables} tables of {results.players:,} players, {results.new_rows:,} new rows"
    rows = [
        [tables, f"{_WANTED_SECONDS:g} s", _spread(seconds, " s"), _verdict(median(seconds) <= _WANTED_SECONDS)],
        [
            f"times {results.tables} Spark MERGEs, four at a time",
            f"{_WANTED_TIMES:g}",
            _spread(times, ""),
            _verdict(median(times) >= _WANTED_TIMES),
        ],
        *(
            [
                f"slope from 1 to 100 times the {grown}",
                f"at most {_WANTED_SLOPE:g}",
                f"{results.slope(grown):.2f}",
                _verdict(results.slope(grown) <= _WANTED_SLOPE),
            ]
            for grown in (HISTORY, PLAYERS)
        ),
    ]
    return table(["figure", "to reach", "measured: median (least to greatest)", "verdict"], rows)


def _circumstances(results: GoldResults) -> str:
    return (
        f"Measured on {results.measured_at[:10]} at commit `{results.commit}`, on {results.cores} cores "
        f"({results.cpu_model}), tables on the local disk; {len(results.races)} rounds, both approaches alternately in "
        "one Spark session, with equal results at the end."
    )


def _sizes(results: GoldResults) -> str:
    head = ["what grew", "times", "silver rows", "players", "seconds: median (least to greatest)", "rows written"]
    rows = [
        [each.grown, f"{each.factor}", f"{each.silver_rows:,}", f"{each.players:,}", _spread(each.seconds, ""),
         f"{each.rows_written:,}"]
        for grown in (HISTORY, PLAYERS)
        for each in results.of(grown)
    ]  # fmt: skip
    return table(head, rows)


def _spread(values: list[float] | tuple[float, ...], unit: str) -> str:
    return f"{median(values):.2f}{unit} ({min(values):.2f} to {max(values):.2f})"


def _verdict(reached: bool) -> str:
    return TargetVerdict.REACHED if reached else TargetVerdict.FALLS_SHORT


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
