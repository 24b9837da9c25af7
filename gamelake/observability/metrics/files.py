"""The telemetry of the stream that reads files: what batches of notifications came to, as figures."""

from enum import Enum

from prometheus_client import CollectorRegistry

from gamelake.observability.metrics.best_effort import harmless
from gamelake.observability.metrics.instruments import MetricDefinition, MetricKind
from gamelake.storage.manifests import BatchManifest
from gamelake.streaming.observers import BatchObserver

TAKEN, SUPERSEDED, DEAD_LETTER = "taken", "superseded", "dead_letter"
# By their keys in a manifest, which stay as they are; the label says it in the words of the setting.
_REASONS = {
    "repeated": "repeated",
    "removed": "removed",
    "elsewhere": "outside_prefix",
    "no_object": "no_object",
}


class FilesMetric(Enum):
    """The metrics by what the code calls them; `monitoring/metrics.yaml` says at length what each means."""

    FILES = MetricDefinition(
        "gamelake_files_processed_total",
        MetricKind.COUNTER,
        ("query", "outcome"),
        "Files that notifications named, by outcome",
    )
    PASSED_OVER = MetricDefinition(
        "gamelake_files_notifications_ignored_total",
        MetricKind.COUNTER,
        ("query", "reason"),
        "Notifications without a file to read, by reason",
    )
    BYTES = MetricDefinition(
        "gamelake_files_bytes_total", MetricKind.COUNTER, ("query",), "Size of the files that notifications named"
    )
    RECORDS = MetricDefinition("gamelake_files_records_total", MetricKind.COUNTER, ("query",), "Records in files")


class FilesTelemetry(BatchObserver):
    """Is notified of a query's batches; neither of its methods raises."""

    def __init__(self, query: str, registry: CollectorRegistry) -> None:
        self._query = query
        self._files = FilesMetric.FILES.value.counter(registry)
        self._passed_over = FilesMetric.PASSED_OVER.value.counter(registry)
        self._bytes = FilesMetric.BYTES.value.counter(registry).labels(query)
        self._records = FilesMetric.RECORDS.value.counter(registry).labels(query)
        # A series that is there from the start has a rate at its first event.
        for outcome in (TAKEN, SUPERSEDED, DEAD_LETTER):
            self._files.labels(query, outcome)
        for reason in _REASONS.values():
            self._passed_over.labels(query, reason)

    @harmless
    def batch_committed(self, manifest: BatchManifest, decide_seconds: float, commit_seconds: float) -> None:
        """Every table has the batch."""
        del decide_seconds, commit_seconds
        if manifest.files is None:
            return
        for outcome, count in manifest.files.objects.items():
            self._files.labels(self._query, outcome).inc(count)
        for key, count in manifest.files.passed_over.items():
            self._passed_over.labels(self._query, _REASONS.get(key, key)).inc(count)
        self._bytes.inc(manifest.files.bytes)
        self._records.inc(manifest.files.records)

    @harmless
    def commit_failed(self) -> None:
        """A commit of one table ended in an error, which the stream's own figures count."""
