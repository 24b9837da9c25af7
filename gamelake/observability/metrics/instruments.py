"""Every metric that the ingest job exposes, defined once; `monitoring/metrics.yaml` says at length what each means."""

from dataclasses import dataclass
from enum import Enum, StrEnum

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 8, 15, 30, 60, 120, 300, 600)

# A `_created` series for each counter would double their number, and no query uses them.
prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]


class MetricKind(StrEnum):
    """Prometheus' type of a metric."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class MetricDefinition:
    """A metric: its whole name, type and labels, and a line of help."""

    name: str
    kind: MetricKind
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

    UP = MetricDefinition("gamelake_stream_up", MetricKind.GAUGE, ("query",), "1 while Spark runs the query")
    STARTED = MetricDefinition(
        "gamelake_stream_started_timestamp_seconds", MetricKind.GAUGE, ("query",), "When Spark started the query"
    )
    LAST_PROGRESS = MetricDefinition(
        "gamelake_stream_last_progress_timestamp_seconds",
        MetricKind.GAUGE,
        ("query",),
        "When the query last started, finished a batch, or reported that it waits for records",
    )
    LAST_POLL = MetricDefinition(
        "gamelake_stream_last_poll_timestamp_seconds",
        MetricKind.GAUGE,
        ("query",),
        "When the driver last got the topic's end offsets from Kafka",
    )
    COMMIT_FAILURES = MetricDefinition(
        "gamelake_stream_commit_failures_total",
        MetricKind.COUNTER,
        ("query",),
        "Failed commits of one table",
    )
    LOG_CHECKPOINT_FAILURES = MetricDefinition(
        "gamelake_stream_log_checkpoint_failures_total",
        MetricKind.COUNTER,
        ("query",),
        "Log checkpoints of tables that could not be written",
    )
    FORGOTTEN = MetricDefinition(
        "gamelake_stream_dedup_forgotten_events",
        MetricKind.GAUGE,
        ("query",),
        "Events of the deduplication window that are beyond the limit on their number",
    )
    HELD_TABLES = MetricDefinition(
        "gamelake_stream_held_tables",
        MetricKind.GAUGE,
        ("query",),
        "Tables that are held back, because they refuse a batch",
    )
    OFFSETS_BEHIND = MetricDefinition(
        "gamelake_stream_offsets_behind",
        MetricKind.GAUGE,
        ("query", "topic", "statistic"),
        "Offsets that are not committed to all tables, over partitions",
    )
    SECONDS_BEHIND = MetricDefinition(
        "gamelake_stream_seconds_behind",
        MetricKind.GAUGE,
        ("query",),
        "Age of the oldest record that is not committed to all tables, 0 when there is none",
    )
    CATCH_UP = MetricDefinition(
        "gamelake_stream_catch_up_seconds",
        MetricKind.GAUGE,
        ("query",),
        "Time until the backlog is read at the current rate, 0 while the query is not behind (estimate)",
    )
    RETENTION_USED = MetricDefinition(
        "gamelake_stream_retention_used_ratio",
        MetricKind.GAUGE,
        ("query", "topic"),
        "Share of Kafka's offsets that are not committed yet, in the worst partition",
    )
    RECORDS = MetricDefinition(
        "gamelake_stream_records_total", MetricKind.COUNTER, ("query",), "Kafka records in committed batches"
    )
    ROWS = MetricDefinition(
        "gamelake_stream_rows_total", MetricKind.COUNTER, ("query", "layer"), "Rows of committed batches by layer"
    )
    DEAD_LETTERS = MetricDefinition(
        "gamelake_stream_dead_letters_total",
        MetricKind.COUNTER,
        ("query", "reason"),
        "Records of committed batches that became dead letters",
    )
    DUPLICATES = MetricDefinition(
        "gamelake_stream_duplicates_total",
        MetricKind.COUNTER,
        ("query", "game"),
        "Records of committed batches whose event was already in silver",
    )
    JUDGED = MetricDefinition(
        "gamelake_quality_rows_evaluated_total",
        MetricKind.COUNTER,
        ("query", "game"),
        "Rows of committed batches that rules have evaluated",
    )
    BROKEN = MetricDefinition(
        "gamelake_quality_rows_broken_total",
        MetricKind.COUNTER,
        ("query", "game", "rule", "severity"),
        "Rows of committed batches that broke a rule",
    )
    UNJUDGED = MetricDefinition(
        "gamelake_quality_rows_unevaluated_total",
        MetricKind.COUNTER,
        ("query", "game", "rule"),
        "Rows of committed batches that a rule could not evaluate because of column types",
    )
    DROPPED = MetricDefinition(
        "gamelake_quality_rows_dropped_total",
        MetricKind.COUNTER,
        ("query", "rule"),
        "Rows of committed batches that a rule has dropped",
    )
    RULES_SINCE = MetricDefinition(
        "gamelake_quality_rules_since_timestamp_seconds",
        MetricKind.GAUGE,
        ("query", "fingerprint"),
        "Since when batches are evaluated by the set of rules with this fingerprint",
    )
    RULES_REFUSED = MetricDefinition(
        "gamelake_quality_rules_rejected",
        MetricKind.GAUGE,
        ("query",),
        "1 while the rule files are invalid and the last valid rules apply",
    )
    TABLE_ROWS = MetricDefinition(
        "gamelake_stream_table_rows_total", MetricKind.COUNTER, ("query", "table"), "Rows that were added to a table"
    )
    FILES = MetricDefinition(
        "gamelake_stream_files_total", MetricKind.COUNTER, ("query", "table"), "Data files that were added to a table"
    )
    BYTES = MetricDefinition(
        "gamelake_stream_bytes_total",
        MetricKind.COUNTER,
        ("query", "table"),
        "Size of the files that were added to a table",
    )
    BATCH_SECONDS = MetricDefinition(
        "gamelake_stream_batch_seconds", MetricKind.HISTOGRAM, ("query", "phase"), "Duration of a phase of a batch"
    )
    GAME_OFFSETS_BEHIND = MetricDefinition(
        "gamelake_game_offsets_behind",
        MetricKind.GAUGE,
        ("query", "game"),
        "The query's offsets behind, divided by the games' shares of recent batches (estimate)",
    )
    GAME_SECONDS_BEHIND = MetricDefinition(
        "gamelake_game_seconds_behind",
        MetricKind.GAUGE,
        ("query", "game"),
        "The query's seconds behind, for a game with records in the backlog (estimate)",
    )
    GAME_LAST_EVENT = MetricDefinition(
        "gamelake_game_last_event_timestamp_seconds",
        MetricKind.GAUGE,
        ("query", "game"),
        "Event time of the newest committed event",
    )


class Instruments:
    """The metrics of one query, in a registry of their own.

    Args:
        registry: where they are collected from.
        query: the value of their first label.
    """

    def __init__(self, registry: CollectorRegistry, query: str) -> None:
        self._query = query
        self._gauges = {each: each.value.gauge(registry) for each in Metric if each.value.kind is MetricKind.GAUGE}
        self._counters = {
            each: each.value.counter(registry) for each in Metric if each.value.kind is MetricKind.COUNTER
        }
        self._histograms = {
            each: each.value.histogram(registry) for each in Metric if each.value.kind is MetricKind.HISTOGRAM
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
