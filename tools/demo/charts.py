"""The charts of a run, drawn by the portal's; each bar and point has a title that is shown on hover."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeAlias

from markupsafe import Markup

from services.portal.charts import Bar, Line, Plot, Point, plot
from tools.demo.figures import BatchFigures, RunSample, Summary

Chart: TypeAlias = Callable[[Summary], Markup]

_LEAST_SECONDS = 0.5
_START = "seconds since the start"


def throughput(summary: Summary) -> Markup:
    """Return records per second: a bar for each batch, as wide as the batch was long, and a line for the simulator."""
    taken = [(batch, _seconds(batch)) for batch in summary.batches]
    bars = [
        (batch.ended - seconds, batch.ended, batch.records / seconds,
         f"batch {batch.batch}: {batch.records:,} records in {seconds:.2f} s")
        for batch, seconds in taken
    ]  # fmt: skip
    sent = [(seconds, rate, f"{seconds:.0f} s: {rate:,.0f} records/s sent") for seconds, rate in _sent(summary.samples)]
    return _chart("Records per second over time", (_START, "records/s"), _end(summary), bars, sent)


def lag(summary: Summary) -> Markup:
    """Return records in Kafka that were not in the tables yet."""
    points = [
        (each.seconds, float(each.lag), f"{each.seconds:.0f} s: {each.lag:,} records behind")
        for each in summary.samples
    ]
    return _chart("Lag over time", (_START, "records behind"), _end(summary), (), points)


def freshness(summary: Summary) -> Markup:
    """Return rows by the seconds from the event's arrival to its commit."""
    width, rows = summary.histogram.bin_seconds, summary.histogram.rows
    bars = [
        (place * width, (place + 0.9) * width, float(count), f"{place * width:g} s and more: {count:,} rows")
        for place, count in enumerate(rows)
    ]
    across = "seconds from arrival to commit"
    return _chart("Freshness of the rows", (across, "rows"), width * len(rows), bars, ())


def _chart(title: str, axes: tuple[str, str], end: float, bars: Sequence[Bar], points: Sequence[Point]) -> Markup:
    heights = [bar[2] for bar in bars] + [point[1] for point in points]
    drawn = Plot(
        title=title,
        description=f"{axes[1]} by {axes[0]}; the highest value is {max(heights, default=0):,.0f}.",
        across=axes[0],
        up=axes[1],
        end=end,
        bars=bars,
        # A line over bars needs another colour than theirs.
        lines=[Line(title, ()), Line(title, points)] if bars else [Line(title, points)],
    )
    return plot(drawn)


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
