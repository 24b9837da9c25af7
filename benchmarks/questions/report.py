"""Writes the results of the questions into docs/performance.md, with a chart."""

from pathlib import Path

from benchmarks.questions.results import QuestionResults, QuestionTimes
from benchmarks.report import put_between_markers, table
from benchmarks.targets import TargetVerdict

_WANTED_MOST, _WANTED_MEDIAN, _WANTED_ROWS = 5.0, 1.5, 50_000_000
# The number of events is random: a little more or less than requested.
_ROWS_TOLERANCE = 0.01


def write_report(results: QuestionResults, docs: Path) -> None:
    """Write the tables between the document's markers, and draw the chart.

    Raises:
        MarkersMissingError: the document has no markers.
    """
    draw(results, docs / "questions.svg")
    parts = [_circumstances(results), summary(results), "![Seconds of each question](questions.svg)", _each(results)]
    put_between_markers(docs / "performance.md", "measured of the questions", parts)


def summary(results: QuestionResults) -> str:
    """The targets and the measured figures."""
    enough = results.rows >= _WANTED_ROWS * (1 - _ROWS_TOLERANCE)
    refused = sum(bool(each.refusal) for each in results.asked)
    slowest = max(results.asked, key=lambda each: each.median)
    rows = [
        [
            f"the slowest of {len(results.asked)} questions over {results.rows:,} events",
            f"at most {_WANTED_MOST:g} s",
            f"{refused} refused" if refused else f"{slowest.median:.2f} s ({slowest.question})",
            _verdict(enough and slowest.median <= _WANTED_MOST),
        ],
        [
            "the question in the middle",
            f"at most {_WANTED_MEDIAN:g} s",
            f"{results.median:.2f} s",
            _verdict(enough and results.median <= _WANTED_MEDIAN),
        ],
    ]
    return table(["figure", "to reach", "measured", "verdict"], rows)


def draw(results: QuestionResults, file: Path) -> None:
    """Write the chart as SVG."""
    import matplotlib as mpl  # noqa: PLC0415 # half a second, and only a whole run draws

    mpl.use("svg")
    # The same figures give the same file.
    mpl.rcParams["svg.hashsalt"] = "gamelake"
    from matplotlib import pyplot  # noqa: PLC0415 # after the line above

    asked = sorted((each for each in results.asked if not each.refusal), key=lambda each: -each.median)
    figure, axes = pyplot.subplots(figsize=(7.6, 0.24 * len(asked) + 1.2), layout="constrained")
    axes.barh([each.question for each in asked], [each.median for each in asked], color="#0969da")
    axes.plot([each.first for each in asked], range(len(asked)), "|", color="#8c959f", markersize=9, label="first time")
    axes.axvline(_WANTED_MOST, color="#cf222e", linewidth=1, label=f"{_WANTED_MOST:g} s")
    axes.set(xlabel="seconds", xlim=(0, None))
    axes.set_title(f"Questions in Trino over {results.rows:,} events", loc="left")
    axes.legend(frameon=False)
    figure.savefig(file, metadata={"Date": None})
    pyplot.close(figure)


def _circumstances(results: QuestionResults) -> str:
    return (
        f"Measured on {results.measured_at[:10]} at commit `{results.commit}`, on {results.cores} cores "
        f"({results.cpu_model}) that the whole stack shared: {results.rows:,} events of {results.players:,} players on "
        f"{results.days} days, one question after the other."
    )


def _each(results: QuestionResults) -> str:
    rows = [
        [each.question, each.refusal or f"{each.median:.2f}", f"{each.first:.2f}", _spread(each)]
        for each in sorted(results.asked, key=lambda each: -each.median)
    ]
    return table(["question", "seconds, median", "first time", "least to greatest"], rows)


def _spread(asked: QuestionTimes) -> str:
    return f"{min(asked.seconds):.2f} to {max(asked.seconds):.2f}" if asked.seconds else ""


def _verdict(reached: bool) -> str:
    return TargetVerdict.REACHED if reached else TargetVerdict.FALLS_SHORT
