"""Writes the results of a run into docs/performance.md and its chart; `python -m benchmarks.report` repeats it."""

import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.approaches import (
    ALONE,
    APPROACHES,
    CEILING,
    CEILING_OF_COLUMNS,
    DEDUP_BY_SPARK,
    DELTA_RS,
    DUCKDB,
    DURING_COMPACTION,
    FAN_OUT_TABLES,
    LONG_ALONE,
    LONG_DELTA_RS,
    LONG_DUCKDB,
    NO_DEDUP,
    PARTITIONED,
    PYTHON_LOOP,
    TEXTBOOK,
    WITH_RULES,
    BenchmarkTopic,
    fan_out_name,
)
from benchmarks.chart import ChartBar, bar_chart
from benchmarks.results import MILLION, FreshnessMeasurement, Measurement, Results, load
from benchmarks.targets import TARGETS
from tools.embedded.service import REPOSITORY

LABELS: dict[str, str] = {
    CEILING: "Spark reads, writes nothing",
    CEILING_OF_COLUMNS: "the same, fan-out's columns",
    **{fan_out_name(tables): f"fan-out, {tables} + 2 tables" for tables in FAN_OUT_TABLES},
    NO_DEDUP: "fan-out, 30 + 2, no dedup",
    DURING_COMPACTION: "fan-out, 30 + 2, during compaction",
    WITH_RULES: "fan-out, 30 + 2, 20 rules a game",
    DEDUP_BY_SPARK: "fan-out, 30 + 2, Spark's dedup",
    TEXTBOOK: "textbook, 30 + 2 appends",
    PARTITIONED: "textbook, 1 partitioned + 2",
    PYTHON_LOOP: "Python loop, 30 tables",
    ALONE: "fan-out, 1 table, no bronze",
    DELTA_RS: "delta-rs consumer, 1 table",
    DUCKDB: "DuckDB consumer, 1 table",
    LONG_ALONE: "fan-out, 1 table, no bronze, 1-KB events",
    LONG_DELTA_RS: "delta-rs consumer, 1 table, 1-KB events",
    LONG_DUCKDB: "DuckDB consumer, 1 table, 1-KB events",
}


class MarkersMissingError(Exception):
    """The document has no markers for the figures."""


def write_report(results: Results, docs: Path) -> None:
    """Write the tables between the document's markers, and draw the chart.

    Raises:
        MarkersMissingError: the document has no markers.
    """
    parts = [_circumstances(results), _goals(results), _ways(results), _commits(results), _freshness(results.freshness)]
    put_between_markers(docs / "performance.md", "measured", parts)
    (docs / "performance.svg").write_text(_chart(results), encoding="utf-8")


def put_between_markers(document: Path, name: str, parts: Sequence[str]) -> None:
    """Replace the text between the comments `<name>: begin` and `<name>: end` of a document.

    Raises:
        MarkersMissingError: the document has no such comments.
    """
    first, last = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, begin, rest = document.read_text(encoding="utf-8").partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise MarkersMissingError(f"{document} lacks the lines {first} and {last}")
    measured = "\n\n".join(parts)
    document.write_text(f"{before}{first}\n\n{measured}\n\n{last}{after}", encoding="utf-8")


def _circumstances(results: Results) -> str:
    machine, versions = results.machine, results.machine.versions
    return (
        f"Measured on {results.measured_at[:10]} at commit `{results.commit}`, with {results.events:,} events of "
        f"{results.wire_bytes_per_event:.0f} bytes, {_rounds(results)} rounds; on {machine.cores} cores "
        f"({machine.cpu_model}) with {machine.memory_bytes / 2**30:.0f} GiB, which Kafka and the registry shared; "
        f"Spark {versions['pyspark']}, Java {versions['java']}, Delta {versions['delta']}, "
        f"delta-rs {versions['deltalake']}, ptars {versions['ptars']}, Kafka {versions['kafka']}. {_quiet(results)}"
    )


def _quiet(results: Results) -> str:
    """The share of the cores that other processes used during the measurements."""
    laps = [each.lap for each in results.measurements if each.lap.other_cpu_seconds is not None]
    if not laps:
        return "The CPU usage of other processes was not measured."
    used = sum(lap.other_cpu_seconds or 0 for lap in laps)
    share = used / (sum(lap.seconds for lap in laps) * results.machine.cores)
    return f"Other processes used {share:.1%} of the cores meanwhile."


def _rounds(results: Results) -> int:
    return max((each.round for each in results.measurements), default=0)


def _goals(results: Results) -> str:
    rows = [[goal.text, goal.bound_text, goal.found(results), goal.verdict(results)] for goal in TARGETS]
    return table(["figure", "to reach", "measured: median (least to greatest)", "verdict"], rows)


def _commits(results: Results) -> str:
    seconds = sorted(value for each in results.commits for value in each.seconds)
    if not seconds:
        return "The commits alone were not measured."
    p95 = seconds[int(0.95 * len(seconds))]
    return (
        f"{results.commits[0].tables} commits together: half of {len(seconds)} repetitions within "
        f"{median(seconds):.2f} s, 95 % within {p95:.2f} s, the slowest {seconds[-1]:.2f} s."
    )


def _ways(results: Results) -> str:
    rows = [_way_row(LABELS[way], found) for way in LABELS if (found := results.of(way))]
    head = ["approach", "records", "records/s", "batches alone", "MB/s", "MB per CPU s", "CPU s per million", "Kafka's"]
    return table([*head, "files", "decide s", "commit s"], rows)


def _way_row(label: str, found: Sequence[Measurement]) -> list[str]:
    rates = [each.rate for each in found]
    return [
        label,
        f"{found[0].records:,}",
        f"{median(rates):,.0f} ({min(rates):,.0f} to {max(rates):,.0f})",
        f"{median(each.trigger_rate for each in found):,.0f}",
        _median([value for each in found if (value := each.megabytes_per_second) is not None], 1),
        _median([value for each in found if (value := each.megabytes_per_cpu_second) is not None], 1),
        _median([value for each in found if (value := each.cpu_seconds_per_million) is not None]),
        _median(
            [value * MILLION / each.records for each in found if (value := each.lap.kafka_cpu_seconds) is not None]
        ),
        f"{found[0].files:,}" if found[0].files else "",
        _median([sum(batch.decide_seconds for batch in each.batches) for each in found if each.batches]),
        _median([sum(batch.commit_seconds for batch in each.batches) for each in found if each.batches]),
    ]


def _median(values: Sequence[float], digits: int = 2) -> str:
    return f"{median(values):.{digits}f}" if values else ""


def _freshness(rounds: Sequence[FreshnessMeasurement]) -> str:
    rows = [
        [
            f"{each.round}",
            f"{each.events:,}",
            f"{each.p50:.2f}",
            f"{each.p95:.2f}",
            f"{each.max:.2f}",
            f"{len(each.batches)}",
            f"{sum(batch.files for batch in each.batches) / sum(batch.tables for batch in each.batches):.2f}",
            _median([batch.decide_seconds for batch in each.batches]),
            _median([batch.commit_seconds for batch in each.batches]),
            "" if each.lap.cpu_seconds is None else f"{each.lap.cpu_seconds / each.lap.seconds:.2f}",
        ]
        for each in rounds
    ]
    head = ["round", "events", "p50 s", "p95 s", "oldest s", "batches", "files per table and batch"]
    return table([*head, "decide s", "commit s", "cores busy"], rows) if rows else "Freshness was not measured."


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))


def _chart(results: Results) -> str:
    bars = [
        ChartBar(
            label=label,
            value=median(rates),
            least=min(rates),
            greatest=max(rates),
            kind="ours" if way.startswith("fan_out") else "peer",
        )
        for way, label in LABELS.items()
        # Records per second of longer records are no bars on the same scale.
        if APPROACHES[way].topic is BenchmarkTopic.EVENTS and (rates := [each.rate for each in results.of(way)])
    ]
    note = (
        f"Median of {_rounds(results)} rounds, the line from the least to the greatest; {results.machine.cores} cores; "
        "+ 2: bronze and silver/events"
    )
    return bar_chart("Records per second, from Kafka to committed tables", note, bars)


def main() -> int:
    """Report the results of a file, by default the latest ones."""
    default = REPOSITORY / "benchmarks" / "results" / "latest.json"
    write_report(load(Path(sys.argv[1]) if len(sys.argv) > 1 else default), REPOSITORY / "docs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
