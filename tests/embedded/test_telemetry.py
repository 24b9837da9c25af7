"""The metrics of the ingest job agree with Kafka, the manifests and the tables, also while it hangs."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from deltalake import DeltaTable

from gamelake.ledger.manifests import BatchManifest, Manifests
from gamelake.model.dead_letter_reasons import DeadLetterReason
from tests.embedded.lakehouse import Job, Lakehouse
from tests.embedded.sending import Sender
from tests.support.eventually import eventually
from tests.support.process_table import descendants_of
from tests.support.scraping import Scraped, declared_names, scrape
from tests.unit.quality.rules_and_rows import a_rule, written
from tools.embedded.ports import free_port

QUERY = {"query": "ingest_events"}
LATE = a_rule("late", "event_id = 'never'", severity="warn")
# They appear once a rule drops a row or does not fit a column's type, as in unit tests.
NOT_EXPECTED = {"gamelake_quality_rows_dropped_total", "gamelake_quality_rows_unevaluated_total"}


@pytest.fixture
def url(lakehouse: Lakehouse) -> str:
    """Where the job serves its metrics."""
    port = free_port()
    lakehouse.settings |= {
        "GAMELAKE_METRICS_PORT": str(port),
        "GAMELAKE_HEARTBEAT_FILE": str(lakehouse.directory / "heartbeat"),
    }
    return f"http://127.0.0.1:{port}/metrics"


def manifests(lakehouse: Lakehouse) -> list[BatchManifest]:
    return Manifests(lakehouse.store, "ingest_events").last(10_000)


def is_caught_up(url: str, records: int) -> bool:
    try:
        now = scrape(url)
    except OSError:
        return False
    return (
        now.value("gamelake_stream_records_total") == records
        and now.value("gamelake_stream_offsets_behind", statistic="sum") == 0
    )


def _is_java(pid: int) -> bool:
    try:
        return "java" in Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:  # Python workers come and go
        return False


@contextmanager
def spark_hanging(job: Job) -> Iterator[None]:
    """Have Spark's JVM stand still for as long as the block lasts."""
    jvms = [pid for pid in descendants_of(job.process.pid) if _is_java(pid)]
    assert jvms
    for pid in jvms:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in jvms:
            os.kill(pid, signal.SIGCONT)


def test_the_metrics_are_those_of_manifests_and_tables(lakehouse: Lakehouse, sender: Sender, url: str) -> None:
    lakehouse.settings["GAMELAKE_RULES"] = str(written(lakehouse.directory / "rules", LATE))
    with lakehouse.ingesting():
        sender.send_events(300, "Archery")
        sender.send_events(100, "Bingo")
        sender.send_bad([b"\x07 wrong magic", b"\x07 again", None])
        eventually(lambda: is_caught_up(url, 403), timeout=180)
        sender.send_events(20, "Archery")
        eventually(lambda: is_caught_up(url, 423), timeout=60)
        eventually(lambda: every_batch_is_reported(lakehouse, url))
        figures = scrape(url)

    assert figures.our_names() == declared_names("ingest-events") - NOT_EXPECTED
    check_counts(figures, lakehouse)
    check_tables(figures, lakehouse)
    check_caught_up(figures, lakehouse)


def every_batch_is_reported(lakehouse: Lakehouse, url: str) -> bool:
    """Spark reports a batch shortly after its commit."""
    return phase_count(scrape(url), "trigger_execution") == len(manifests(lakehouse))


def phase_count(figures: Scraped, phase: str) -> float:
    return figures.value("gamelake_stream_batch_seconds_count", phase=phase)


def check_counts(figures: Scraped, lakehouse: Lakehouse) -> None:
    rows = {layer: figures.value("gamelake_stream_rows_total", layer=layer, **QUERY) for layer in ("bronze", "silver")}
    assert rows == {"bronze": 423, "silver": 420}
    assert figures.value("gamelake_stream_rows_total", layer="dead_letters") == 3
    reasons = {
        reason.value: figures.value("gamelake_stream_dead_letters_total", reason=reason.value)
        for reason in DeadLetterReason
    }
    assert reasons == {reason.value: lakehouse.reasons()[reason.value] for reason in DeadLetterReason}
    assert figures.value("gamelake_stream_commit_failures_total") == 0
    assert sum(figures.values("gamelake_quality_rows_broken_total")) == 420
    decided = manifests(lakehouse)
    for phase in ("decide", "commit", "add_batch", "latest_offset", "query_planning"):
        assert phase_count(figures, phase) == len(decided)


def check_tables(figures: Scraped, lakehouse: Lakehouse) -> None:
    tables = {entry.table for manifest in manifests(lakehouse) for entry in manifest.tables}
    assert figures.labels("gamelake_stream_files_total", "table") == tables
    assert figures.labels("gamelake_game_offsets_behind", "game") == {"archery", "bingo"}
    for table in tables:
        files = [
            Path(uri.removeprefix("file://"))
            for uri in DeltaTable(str(lakehouse.directory / "lake" / table)).file_uris()
        ]
        assert figures.value("gamelake_stream_table_rows_total", table=table) == lakehouse.rows(table).num_rows
        assert figures.value("gamelake_stream_files_total", table=table) == len(files)
        assert figures.value("gamelake_stream_bytes_total", table=table) == sum(file.stat().st_size for file in files)


def check_caught_up(figures: Scraped, lakehouse: Lakehouse) -> None:
    assert figures.values("gamelake_stream_offsets_behind") == [0] * 4
    for name in ("seconds_behind", "catch_up_seconds", "retention_used_ratio"):
        assert figures.value(f"gamelake_stream_{name}") == 0
    assert figures.values("gamelake_game_seconds_behind") == [0, 0]
    assert figures.value("gamelake_stream_up") == 1
    assert figures.value("gamelake_stream_started_timestamp_seconds") < time.time()
    for name in ("last_progress", "last_poll"):
        assert time.time() - figures.value(f"gamelake_stream_{name}_timestamp_seconds") < 60
    assert time.time() - (lakehouse.directory / "heartbeat").stat().st_mtime < 60
    for game in ("archery", "bingo"):
        newest = max(lakehouse.rows(f"silver/{game}_events", "event_time")["event_time"].to_pylist())
        assert figures.value("gamelake_game_last_event_timestamp_seconds", game=game) == pytest.approx(
            newest.timestamp(), abs=1
        )


@pytest.mark.slow
def test_the_lag_grows_while_the_query_hangs_and_is_gone_when_it_continues(
    lakehouse: Lakehouse, sender: Sender, url: str
) -> None:
    with lakehouse.ingesting() as job:
        sender.send_events(30, "Archery")
        eventually(lambda: is_caught_up(url, 30), timeout=180)
        eventually(lambda: every_batch_is_reported(lakehouse, url))
        with spark_hanging(job):
            before = scrape(url)
            first = time.time()
            sender.send_events(40, "Archery")
            eventually(lambda: scrape(url).value("gamelake_stream_offsets_behind", statistic="sum") == 40)
            sender.send_events(50, "Archery")
            eventually(lambda: scrape(url).value("gamelake_stream_offsets_behind", statistic="sum") == 90)
            eventually(lambda: scrape(url).value("gamelake_stream_seconds_behind") > 8)
            hanging = scrape(url)
            # It is the age of the first record that waits, to a second.
            assert hanging.value("gamelake_stream_seconds_behind") == pytest.approx(time.time() - first, abs=1)
        eventually(lambda: is_caught_up(url, 120), timeout=60)
        eventually(lambda: every_batch_is_reported(lakehouse, url))
        after = scrape(url)

    assert hanging.value("gamelake_game_offsets_behind", game="archery") == 90
    assert hanging.value("gamelake_game_seconds_behind", game="archery") > 8
    assert hanging.value("gamelake_stream_retention_used_ratio") == pytest.approx(90 / 120, abs=0.2)
    progress, beat = "gamelake_stream_last_progress_timestamp_seconds", lakehouse.directory / "heartbeat"
    assert hanging.value(progress) == before.value(progress) < after.value(progress)
    assert beat.stat().st_mtime > hanging.value(progress) + 1
    assert after.value("gamelake_stream_seconds_behind") == 0


@pytest.mark.slow
def test_a_restart_continues_with_the_lag_and_counts_from_zero(lakehouse: Lakehouse, sender: Sender, url: str) -> None:
    sender.send_events(30, "Archery")
    lakehouse.ingest_in_a_process()
    sender.send_events(10, "Archery")

    with lakehouse.ingesting():
        eventually(lambda: is_caught_up(url, 10), timeout=180)
        figures = scrape(url)

    assert figures.value("gamelake_stream_rows_total", layer="silver") == 10
    assert lakehouse.reconciliation().problems == []


@pytest.mark.slow
def test_a_port_in_use_stops_the_metrics_but_not_the_stream(lakehouse: Lakehouse, sender: Sender, url: str) -> None:
    lakehouse.settings["GAMELAKE_METRICS_PORT"] = lakehouse.registry_url.split(":")[2].split("/")[0]
    sender.send_events(10, "Archery")

    lakehouse.ingest_in_a_process()

    assert "metrics_not_served host=127.0.0.1" in (lakehouse.directory / "job.log").read_text()
    assert lakehouse.reconciliation().silver_rows == 10
