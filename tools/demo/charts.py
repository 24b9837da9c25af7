"""The charts of a run."""

from collections.abc import Callable
from itertools import pairwise
from typing import TypeAlias
from xml.etree import ElementTree as ET

from tools.demo.figures import BatchFigures, RunSample, Summary
from tools.demo.plot import Axis, Frame, LabelledBar, Side, bar_list

Chart: TypeAlias = Callable[[Summary], ET.Element]

_LEAST_SECONDS = 0.5
_BATCH_MARKS = 10
_GIB = 2**30
_START, _PLAYED = "seconds since the start", "seconds of event time"


def throughput(summary: Summary) -> ET.Element:
    """Records per second: a block for each batch, as wide as the batch was long, and a line for the simulator."""
    taken = [(batch, batch.records / _seconds(batch)) for batch in summary.batches]
    sent = _sent_rates(summary.samples)
    most = max([rate for _, rate in taken] + [rate for _, rate in sent], default=0)
    frame = Frame("Records per second over time", Axis(_START, _end(summary)), Axis("records/s", most))
    for batch, rate in taken:
        title = f"batch {batch.batch}: {batch.records:,} records in {_seconds(batch):.2f} s = {rate:,.0f}/s"
        frame.bar("a", batch.ended - _seconds(batch), batch.ended, (0, rate), title)
    frame.line("b line", sent)
    frame.spots((seconds, rate, f"{seconds:.0f} s: {rate:,.0f} records/s sent") for seconds, rate in sent)
    return frame.svg


def _sent_rates(samples: tuple[RunSample, ...]) -> list[tuple[float, float]]:
    """Records per second into Kafka between two samples; samples that are close together are left out."""
    rates = [(samples[0].seconds, 0.0)]
    for before, after in pairwise(samples):
        seconds = after.seconds - before.seconds
        if seconds >= _LEAST_SECONDS:
            rates.append((after.seconds, (after.produced - before.produced) / seconds))
    return rates


def lag(summary: Summary) -> ET.Element:
    """Records in Kafka that are not in the tables yet."""
    points = [(sample.seconds, float(sample.lag)) for sample in summary.samples]
    most = max(behind for _, behind in points)
    frame = Frame("Lag over time", Axis(_START, _end(summary)), Axis("records behind", most))
    frame.area("a soft", points)
    frame.line("a line", points)
    frame.spots((seconds, behind, f"{seconds:.0f} s: {behind:,.0f} records behind") for seconds, behind in points)
    return frame.svg


def batch_durations(summary: Summary) -> ET.Element:
    """Seconds of each batch for its decision (read, decode, write files) and for its commits."""
    batches = summary.batches
    every = max(1, round(len(batches) / _BATCH_MARKS))
    marks = tuple((place + 0.5, str(batch.batch)) for place, batch in enumerate(batches) if place % every == 0)
    up = Axis("seconds", max(map(_seconds, batches)))
    frame = Frame("Seconds per batch", Axis("batch", len(batches), marks), up)
    for place, batch in enumerate(batches):
        decided, whole = batch.decide_seconds, _seconds(batch)
        title = f"batch {batch.batch}: {decided:.2f} s to decide, {batch.commit_seconds:.2f} s to commit"
        detail = f"{title}; {batch.records:,} records, {batch.files:,} files, {batch.tables} tables"
        frame.bar("a", place + 0.1, place + 0.9, (0, decided), detail)
        frame.bar("b", place + 0.1, place + 0.9, (decided, whole), detail)
    return frame.svg


def freshness(summary: Summary) -> ET.Element:
    """Rows by the seconds from the event's arrival to its commit."""
    width, rows = summary.histogram.bin_seconds, summary.histogram.rows
    across = Axis("seconds from arrival to commit", width * len(rows))
    frame = Frame("FreshnessPercentiles of the rows", across, Axis("rows", max(rows, default=0)))
    for place, count in enumerate(rows):
        low, high = place * width, (place + 1) * width
        frame.bar("a", low + width * 0.06, high - width * 0.06, (0, count), f"{low:g} to {high:g} s: {count:,} rows")
    frame.marker(summary.freshness.p50_seconds, f"p50 {summary.freshness.p50_seconds:.1f} s", Side.LEFT)
    frame.marker(summary.freshness.p95_seconds, f"p95 {summary.freshness.p95_seconds:.1f} s", Side.RIGHT)
    return frame.svg


def memory(summary: Summary) -> ET.Element:
    """Memory of all processes together."""
    points = [(sample.seconds, sample.memory_bytes / _GIB) for sample in summary.samples]
    frame = Frame("Memory over time", Axis(_START, _end(summary)), Axis("GiB", max(size for _, size in points)))
    frame.area("a soft", points)
    frame.line("a line", points)
    frame.spots((seconds, size, f"{seconds:.0f} s: {size:.2f} GiB") for seconds, size in points)
    return frame.svg


def rows_per_game(summary: Summary) -> ET.Element:
    """Rows added to each game's table."""
    bars = [
        LabelledBar(game.game, game.rows, f"{game.table}: {game.rows:,} rows in {game.files} files")
        for game in summary.games
    ]
    return bar_list("Rows per game", bars)


def events_played(summary: Summary) -> ET.Element:
    """Events by event time."""
    course = summary.key_figures.course
    most = max((time_bin.events for time_bin in course), default=0)
    frame = Frame("Events by event time", Axis(_PLAYED, _played(summary)), Axis("events", most))
    for time_bin in course:
        title = f"{time_bin.begins:,.0f} to {time_bin.ends:,.0f} s: {time_bin.events:,} events"
        frame.bar("a", time_bin.begins, time_bin.ends, (0, time_bin.events), title)
    return frame.svg


def bookings(summary: Summary) -> ET.Element:
    """Bookings by event time."""
    course = summary.key_figures.course
    most = max((time_bin.bookings for time_bin in course), default=0)
    frame = Frame("Bookings by event time", Axis(_PLAYED, _played(summary)), Axis("US dollars", most))
    for time_bin in course:
        title = f"{time_bin.begins:,.0f} to {time_bin.ends:,.0f} s: {time_bin.bookings:,.2f} dollars"
        frame.bar("b", time_bin.begins, time_bin.ends, (0, time_bin.bookings), title)
    return frame.svg


def bookings_per_game(summary: Summary) -> ET.Element:
    """Bookings of each game."""
    bars = [
        LabelledBar(
            game.game, game.bookings, f"{game.game}: {game.bookings:,.2f} dollars of {game.payers:,} paying players"
        )
        for game in summary.key_figures.games
    ]
    return bar_list("Bookings per game", bars)


def _played(summary: Summary) -> float:
    return max((time_bin.ends for time_bin in summary.key_figures.course), default=0)


def dead_letters(summary: Summary) -> ET.Element:
    """Dead letters by reason."""
    found = sorted(summary.dead_letters.items(), key=lambda item: -item[1])
    bars = [LabelledBar(reason, count, f"{count:,} dead letters: {reason}") for reason, count in found]
    return bar_list("Dead letters by reason", bars)


def broken_rules(summary: Summary) -> ET.Element:
    """Rows by the rule that they broke."""
    found = sorted(summary.broken_rules.items(), key=lambda item: -item[1])
    bars = [LabelledBar(rule, count, f"{count:,} rows: {rule}") for rule, count in found]
    return bar_list("Rows that broke a rule", bars)


def _seconds(batch: BatchFigures) -> float:
    return batch.decide_seconds + batch.commit_seconds


def _end(summary: Summary) -> float:
    return max(summary.times.last_commit, summary.samples[-1].seconds)


ALL = (
    throughput,
    lag,
    batch_durations,
    freshness,
    rows_per_game,
    dead_letters,
    broken_rules,
    memory,
    events_played,
    bookings,
    bookings_per_game,
)
