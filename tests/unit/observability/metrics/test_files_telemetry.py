"""What batches of notifications came to, as Prometheus would read it."""

import msgspec
from prometheus_client import CollectorRegistry

from gamelake.ledger.manifests import FilesTaken
from gamelake.observability.metrics.files import FilesTelemetry
from tests.support.scraping import declared_names, scraped
from tests.unit.observability.metrics.batches import batch

NOON = 1_700_000_000.0


def test_files_are_counted_by_what_became_of_them_from_the_start() -> None:
    registry = CollectorRegistry()
    telemetry = FilesTelemetry("ingest_files", registry)
    taken = FilesTaken(objects={"taken": 3, "dead_letter": 1}, passed_over={"repeated": 7}, records=31, bytes=500)

    for number in range(2):
        manifest = msgspec.structs.replace(batch(number, NOON, {"archery": (30, NOON)}), files=taken)
        telemetry.batch_committed(manifest, decide_seconds=1, commit_seconds=1)
    telemetry.batch_committed(batch(2, NOON, {}), decide_seconds=1, commit_seconds=1)

    figures = scraped(registry)
    assert figures.our_names() == declared_names("files")
    found = {
        outcome: figures.value("gamelake_files_processed_total", outcome=outcome)
        for outcome in ("taken", "superseded", "dead_letter")
    }
    assert found == {"taken": 6, "superseded": 0, "dead_letter": 2}
    assert figures.value("gamelake_files_notifications_ignored_total", reason="repeated") == 14
    assert figures.value("gamelake_files_records_total", query="ingest_files") == 62
    assert figures.value("gamelake_files_newest_schema_unusable", query="ingest_files") == 0


def test_a_newest_schema_that_can_not_be_used_is_a_figure_until_a_batch_of_files_is_read_by_it() -> None:
    registry = CollectorRegistry()
    telemetry = FilesTelemetry("ingest_files", registry)

    values = []
    for number, schema in enumerate((17, None, 0)):
        taken = (
            None
            if schema is None
            else FilesTaken(objects={}, passed_over={}, records=0, bytes=0, unusable_schema=schema)
        )
        manifest = msgspec.structs.replace(batch(number, NOON, {}), files=taken)
        telemetry.batch_committed(manifest, decide_seconds=1, commit_seconds=1)
        values.append(registry.get_sample_value("gamelake_files_newest_schema_unusable", {"query": "ingest_files"}))

    assert values == [1, 1, 0]
