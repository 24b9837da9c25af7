"""The instruments of an ingest query: names in the code, and the labels that follow the query's."""

from enum import Enum

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from gamelake.observability.metrics import declared


class StreamGauge(Enum):
    """The gauges by their names in the code: declared name, and labels after `query`."""

    UP = ("gamelake_stream_up",)
    STARTED = ("gamelake_stream_started_timestamp_seconds",)
    LAST_PROGRESS = ("gamelake_stream_last_progress_timestamp_seconds",)
    LAST_POLL = ("gamelake_stream_last_poll_timestamp_seconds",)
    FORGOTTEN = ("gamelake_stream_dedup_forgotten_events",)
    HELD_TABLES = ("gamelake_stream_held_tables",)
    OFFSETS_BEHIND = ("gamelake_stream_offsets_behind", "topic", "statistic")
    SECONDS_BEHIND = ("gamelake_stream_seconds_behind",)
    CATCH_UP = ("gamelake_stream_catch_up_seconds",)
    RETENTION_USED = ("gamelake_stream_retention_used_ratio", "topic")
    RULES_SINCE = ("gamelake_quality_rules_since_timestamp_seconds", "fingerprint")
    RULES_REFUSED = ("gamelake_quality_rules_rejected",)
    GAME_OFFSETS_BEHIND = ("gamelake_game_offsets_behind", "game")
    GAME_SECONDS_BEHIND = ("gamelake_game_seconds_behind", "game")
    GAME_LAST_EVENT = ("gamelake_game_last_event_timestamp_seconds", "game")


class StreamCounter(Enum):
    """The counters by their names in the code: declared name, and labels after `query`."""

    COMMIT_FAILURES = ("gamelake_stream_commit_failures_total",)
    LOG_CHECKPOINT_FAILURES = ("gamelake_stream_log_checkpoint_failures_total",)
    RECORDS = ("gamelake_stream_records_total",)
    ROWS = ("gamelake_stream_rows_total", "layer")
    DEAD_LETTERS = ("gamelake_stream_dead_letters_total", "reason")
    DUPLICATES = ("gamelake_stream_duplicates_total", "game")
    JUDGED = ("gamelake_quality_rows_evaluated_total", "game")
    BROKEN = ("gamelake_quality_rows_broken_total", "game", "rule", "severity")
    UNJUDGED = ("gamelake_quality_rows_unevaluated_total", "game", "rule")
    DROPPED = ("gamelake_quality_rows_dropped_total", "rule")
    TABLE_ROWS = ("gamelake_stream_table_rows_total", "table")
    FILES = ("gamelake_stream_files_total", "table")
    BYTES = ("gamelake_stream_bytes_total", "table")


class Instruments:
    """The metrics of one query.

    Args:
        registry: where they are collected from.
        query: the value of their first label.
    """

    def __init__(self, registry: CollectorRegistry, query: str) -> None:
        self._query = query
        self._gauges = {each: declared.gauge(registry, *_with_query(each)) for each in StreamGauge}
        self._counters = {each: declared.counter(registry, *_with_query(each)) for each in StreamCounter}
        self._phases = declared.histogram(registry, "gamelake_stream_batch_seconds", "query", "phase")

    def gauge(self, metric: StreamGauge, *labels: str) -> Gauge:
        """Return a gauge by the labels that follow the query."""
        return self._gauges[metric].labels(self._query, *labels)

    def forget(self, metric: StreamGauge, *labels: str) -> None:
        """Stop showing a gauge."""
        self._gauges[metric].remove(self._query, *labels)

    def counter(self, metric: StreamCounter, *labels: str) -> Counter:
        """Return a counter by the labels that follow the query."""
        return self._counters[metric].labels(self._query, *labels)

    def batch_seconds(self, phase: str) -> Histogram:
        """Return the histogram of a phase of a batch."""
        return self._phases.labels(self._query, phase)


def _with_query(metric: StreamGauge | StreamCounter) -> tuple[str, ...]:
    name, *labels = metric.value
    return (name, "query", *labels)
