"""The telemetry of the stream that reads files: what batches of notifications came to, as figures."""

from prometheus_client import CollectorRegistry

from gamelake.ledger.manifests import BatchManifest
from gamelake.model.observers import harmless
from gamelake.observability.metrics import declared
from gamelake.streaming.driver.observers import BatchObserver

TAKEN, SUPERSEDED, DEAD_LETTER = "taken", "superseded", "dead_letter"
# By their keys in a manifest, which stay as they are; the label says it in the words of the setting.
_REASONS = {
    "repeated": "repeated",
    "removed": "removed",
    "elsewhere": "outside_prefix",
    "no_object": "no_object",
}


class FilesTelemetry(BatchObserver):
    """Is notified of a query's batches; neither of its methods raises."""

    def __init__(self, query: str, registry: CollectorRegistry) -> None:
        self._query = query
        self._files = declared.counter(registry, "gamelake_files_processed_total", "query", "outcome")
        self._passed_over = declared.counter(registry, "gamelake_files_notifications_ignored_total", "query", "reason")
        self._bytes = declared.counter(registry, "gamelake_files_bytes_total", "query").labels(query)
        self._records = declared.counter(registry, "gamelake_files_records_total", "query").labels(query)
        schema_unusable = declared.gauge(registry, "gamelake_files_newest_schema_unusable", "query")
        self._schema_unusable = schema_unusable.labels(query)
        # A series that is there from the start has a rate at its first event.
        for outcome in (TAKEN, SUPERSEDED, DEAD_LETTER):
            self._files.labels(query, outcome)
        for reason in _REASONS.values():
            self._passed_over.labels(query, reason)

    @harmless
    def batch_committed(self, manifest: BatchManifest, decide_seconds: float, commit_seconds: float) -> None:
        """Count a batch that every table has."""
        del decide_seconds, commit_seconds
        if manifest.files is None:
            return
        for outcome, count in manifest.files.objects.items():
            self._files.labels(self._query, outcome).inc(count)
        for key, count in manifest.files.passed_over.items():
            self._passed_over.labels(self._query, _REASONS.get(key, key)).inc(count)
        self._bytes.inc(manifest.files.bytes)
        self._records.inc(manifest.files.records)
        self._schema_unusable.set(manifest.files.unusable_schema != 0)

    @harmless
    def commit_failed(self) -> None:
        """Do nothing: the stream's own figures count a commit of one table that ended in an error."""
