"""Every metric that the ingest job exposes, defined once; `monitoring/metrics.yaml` says at length what each means."""

from dataclasses import dataclass
from enum import Enum, StrEnum

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 8, 15, 30, 60, 120, 300, 600)

# A `_created` series for each counter would double their number, and nobody asks for them.
prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]


class Kind(StrEnum):
    """Prometheus' type of a metric."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Definition:
    """A metric: its whole name, type and labels, and a line of help."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str

    def gauge(self, registry: CollectorRegistry) -> Gauge:
        """A new gauge of this name."""
        return Gauge(self.name, self.help, self.labels, registry=registry)

    def counter(self, registry: CollectorRegistry) -> Counter:
        """A new counter of this name."""
        return Counter(self.name, self.help, self.labels, registry=registry)

    def histogram(self, registry: CollectorRegistry) -> Histogram:
        """A new histogram of this name, in seconds."""
        return Histogram(self.name, self.help, self.labels, buckets=BUCKETS, registry=registry)


class Metric(Enum):
    """The metrics by what the code calls them."""

    UP = Definition("gamelake_stream_up", Kind.GAUGE, ("query",), "1 while Spark runs the query")
    STARTED = Definition(
        "gamelake_stream_started_timestamp_seconds", Kind.GAUGE, ("query",), "When Spark started the query"
    )
    LAST_PROGRESS = Definition(
        "gamelake_stream_last_progress_timestamp_seconds",
        Kind.GAUGE,
        ("query",),
        "When the query last started, finished a batch, or told that it waits for records",
    )
    LAST_LOOK = Definition(
        "gamelake_stream_last_poll_timestamp_seconds",
        Kind.GAUGE,
        ("query",),
        "When Kafka last told how far the topic goes",
    )
    COMMIT_FAILURES = Definition(
        "gamelake_stream_commit_failures_total",
        Kind.COUNTER,
        ("query",),
        "Commits of one table that ended in an error",
    )
    OFFSETS_BEHIND = Definition(
        "gamelake_stream_offsets_behind",
        Kind.GAUGE,
        ("query", "topic", "statistic"),
        "Offsets that are not committed to all tables, over partitions",
    )
    SECONDS_BEHIND = Definition(
        "gamelake_stream_seconds_behind",
        Kind.GAUGE,
        ("query",),
        "Age of the oldest record that is not committed to all tables, 0 when there is none",
    )
    CATCH_UP = Definition(
        "gamelake_stream_catch_up_seconds",
        Kind.GAUGE,
        ("query",),
        "Time until all is read at the pace of the last minutes, 0 while the query keeps up (estimate)",
    )
    RETENTION_USED = Definition(
        "gamelake_stream_retention_used_ratio",
        Kind.GAUGE,
        ("query", "topic"),
        "Share of what Kafka holds that is not committed yet, in the worst partition",
    )
    RECORDS = Definition(
        "gamelake_stream_records_total", Kind.COUNTER, ("query",), "Kafka records in committed batches"
    )
    ROWS = Definition(
        "gamelake_stream_rows_total", Kind.COUNTER, ("query", "layer"), "Rows of committed batches by layer"
    )
    DEAD_LETTERS = Definition(
        "gamelake_stream_dead_letters_total",
        Kind.COUNTER,
        ("query", "reason"),
        "Records of committed batches that became dead letters",
    )
    DUPLICATES = Definition(
        "gamelake_stream_duplicates_total",
        Kind.COUNTER,
        ("query", "game"),
        "Records of committed batches whose event silver had already",
    )
    JUDGED = Definition(
        "gamelake_quality_rows_evaluated_total",
        Kind.COUNTER,
        ("query", "game"),
        "Rows of committed batches that rules have judged",
    )
    BROKEN = Definition(
        "gamelake_quality_rows_broken_total",
        Kind.COUNTER,
        ("query", "game", "rule", "severity"),
        "Rows of committed batches that broke a rule",
    )
    UNJUDGED = Definition(
        "gamelake_quality_rows_unevaluated_total",
        Kind.COUNTER,
        ("query", "game", "rule"),
        "Rows of committed batches that a rule could not judge, by the types of their columns",
    )
    DROPPED = Definition(
        "gamelake_quality_rows_dropped_total",
        Kind.COUNTER,
        ("query", "rule"),
        "Rows of committed batches that a rule has dropped",
    )
    RULES_SINCE = Definition(
        "gamelake_quality_rules_since_timestamp_seconds",
        Kind.GAUGE,
        ("query", "fingerprint"),
        "Since when batches are judged by the set of rules with this fingerprint",
    )
    RULES_REFUSED = Definition(
        "gamelake_quality_rules_rejected",
        Kind.GAUGE,
        ("query",),
        "1 while the files of the rules say something else than what is in force, as they are broken",
    )
    TABLE_ROWS = Definition(
        "gamelake_stream_table_rows_total", Kind.COUNTER, ("query", "table"), "Rows that were added to a table"
    )
    FILES = Definition(
        "gamelake_stream_files_total", Kind.COUNTER, ("query", "table"), "Data files that were added to a table"
    )
    BYTES = Definition(
        "gamelake_stream_bytes_total", Kind.COUNTER, ("query", "table"), "Size of the files that were added to a table"
    )
    BATCH_SECONDS = Definition(
        "gamelake_stream_batch_seconds", Kind.HISTOGRAM, ("query", "phase"), "How long a part of a batch took"
    )
    GAME_OFFSETS_BEHIND = Definition(
        "gamelake_game_offsets_behind",
        Kind.GAUGE,
        ("query", "game"),
        "The query's offsets behind, shared out by the games' shares of recent batches (estimate)",
    )
    GAME_SECONDS_BEHIND = Definition(
        "gamelake_game_seconds_behind",
        Kind.GAUGE,
        ("query", "game"),
        "The query's seconds behind, for a game that has a part in what is behind (estimate)",
    )
    GAME_LAST_EVENT = Definition(
        "gamelake_game_last_event_timestamp_seconds",
        Kind.GAUGE,
        ("query", "game"),
        "Event time of the newest event committed",
    )


class Instruments:
    """The metrics of one query, in a registry of their own.

    Args:
        registry: where they are collected from.
        query: the value of their first label.
    """

    def __init__(self, registry: CollectorRegistry, query: str) -> None:
        self._query = query
        self._gauges = {each: each.value.gauge(registry) for each in Metric if each.value.kind is Kind.GAUGE}
        self._counters = {each: each.value.counter(registry) for each in Metric if each.value.kind is Kind.COUNTER}
        self._histograms = {
            each: each.value.histogram(registry) for each in Metric if each.value.kind is Kind.HISTOGRAM
        }

    def gauge(self, metric: Metric, *labels: str) -> Gauge:
        """A gauge by the labels that follow the query."""
        return self._gauges[metric].labels(self._query, *labels)

    def forget(self, metric: Metric, *labels: str) -> None:
        """Show a gauge no more."""
        self._gauges[metric].remove(self._query, *labels)

    def counter(self, metric: Metric, *labels: str) -> Counter:
        """A counter by the labels that follow the query."""
        return self._counters[metric].labels(self._query, *labels)

    def histogram(self, metric: Metric, *labels: str) -> Histogram:
        """A histogram by the labels that follow the query."""
        return self._histograms[metric].labels(self._query, *labels)
