"""The metrics of a query, notified of batches as the fan-out and Spark would, and read as Prometheus would."""

import math
from pathlib import Path

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from gamelake.ledger.manifests import BatchManifest
from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.observability.metrics.endpoint import Heartbeat
from gamelake.observability.metrics.lag import LagReading, OffsetSpan
from gamelake.observability.metrics.stream import Games, Observed, StreamProgress, StreamTelemetry
from tests.support.logged import logged
from tests.support.scraping import Scraped, declared_names, scraped
from tests.unit.observability.metrics.batches import batch, judged

NOON = 1_700_000_000.0


class Query:
    """A query that is observed."""

    def __init__(self, *recent: BatchManifest, heartbeat: Path | None = None) -> None:
        observed = Observed(query="q", topic="events", trigger_seconds=0, positions={0: 0}, recent=recent)
        self.registry = CollectorRegistry()
        self.telemetry = StreamTelemetry(observed, self.registry, Heartbeat(heartbeat))

    def take(self, manifest: BatchManifest) -> None:
        self.telemetry.batch_committed(manifest, decide_seconds=0.7, commit_seconds=0.2)

    def poll(self, end: int) -> None:
        """Have Kafka say how far the topic goes."""
        self.telemetry.lag.update(LagReading(NOON, {0: OffsetSpan(0, end)}))

    @property
    def figures(self) -> Scraped:
        return scraped(self.registry)


def test_after_a_batch_all_that_is_declared_is_there_and_nothing_else() -> None:
    query = Query()
    query.take(msgspec.structs.replace(batch(0, NOON, {"archery": (10, NOON)}), judged=judged()))
    query.telemetry.progressed(StreamProgress({"addBatch": 900, "triggerExecution": 1000}, left=0))

    assert query.figures.our_names() == declared_names("ingest-events")


def test_what_has_a_rate_is_there_from_the_start_at_zero() -> None:
    figures = Query().figures

    assert figures.value("gamelake_stream_up") == 0
    assert figures.value("gamelake_stream_records_total") == 0
    assert figures.value("gamelake_stream_commit_failures_total") == 0
    assert figures.values("gamelake_stream_rows_total") == [0, 0, 0, 0]
    assert figures.values("gamelake_stream_dead_letters_total") == [0] * len(DeadLetterReason)
    assert math.isnan(figures.value("gamelake_stream_offsets_behind", statistic="sum"))


def test_failed_log_checkpoints_are_counted() -> None:
    query = Query()
    before = query.figures.value("gamelake_stream_log_checkpoint_failures_total")

    query.telemetry.log_checkpoint_failed()

    assert (before, query.figures.value("gamelake_stream_log_checkpoint_failures_total")) == (0, 1)


def test_events_that_the_window_has_no_room_for_are_shown_until_it_has_room() -> None:
    query = Query()
    shown = []
    for left_out in (0, 3000, 0):
        query.telemetry.window_checked(left_out)
        shown.append(query.figures.value("gamelake_stream_dedup_forgotten_events"))

    assert shown == [0, 3000, 0]


def test_the_number_of_tables_that_are_held_back_is_shown() -> None:
    query = Query()
    shown = [query.figures.value("gamelake_stream_held_tables")]
    for count in (2, 0):
        query.telemetry.tables_held_back(count)
        shown.append(query.figures.value("gamelake_stream_held_tables"))

    assert shown == [0, 2, 0]


def test_batches_are_counted_by_layer_table_and_reason() -> None:
    query = Query()
    query.take(batch(0, NOON, {"archery": (10, NOON), "bingo": (5, NOON)}, dead_letters=2))
    query.take(batch(1, NOON, {"archery": (1, NOON)}))

    figures = query.figures

    assert figures.value("gamelake_stream_records_total") == 18
    rows = {layer: figures.value("gamelake_stream_rows_total", layer=layer) for layer in ("bronze", "silver")}
    assert rows == {"bronze": 18, "silver": 16}
    assert figures.value("gamelake_stream_rows_total", layer="dead_letters") == 2
    assert figures.value("gamelake_stream_dead_letters_total", reason="bad_framing") == 2
    assert figures.value("gamelake_stream_table_rows_total", table="silver/archery_events") == 11
    assert figures.value("gamelake_stream_files_total", table="silver/archery_events") == 2
    assert figures.value("gamelake_stream_bytes_total", table="silver/bingo_events") == 500
    assert figures.value("gamelake_stream_batch_seconds_sum", phase="decide") == pytest.approx(1.4)
    assert figures.value("gamelake_stream_batch_seconds_count", phase="commit") == 2


def test_offsets_behind_are_shared_out_by_what_games_had_of_late() -> None:
    query = Query()
    query.take(batch(0, NOON, {"archery": (75, NOON), "bingo": (20, NOON)}, dead_letters=5))
    query.poll(end=140)

    figures = query.figures

    assert figures.value("gamelake_game_offsets_behind", game="archery") == 30
    assert figures.value("gamelake_game_offsets_behind", game="bingo") == 8
    assert figures.value("gamelake_game_seconds_behind", game="bingo") > 0


def test_a_game_with_no_part_in_what_is_behind_is_not_behind() -> None:
    query = Query()
    query.take(batch(0, NOON, {"archery": (99, NOON), "bingo": (1, NOON)}))
    query.poll(end=150)

    assert query.figures.value("gamelake_game_seconds_behind", game="bingo") == 0
    assert query.figures.value("gamelake_game_seconds_behind", game="archery") > 0


def test_phases_that_a_later_spark_may_add_make_no_series_and_idle_triggers_no_samples() -> None:
    query = Query()
    query.telemetry.progressed(StreamProgress({"latestOffset": 3, "triggerExecution": 3}, left=0))
    query.telemetry.progressed(StreamProgress({"addBatch": 900, "brandNew": 5, "triggerExecution": 1000}, left=0))

    assert query.figures.labels("gamelake_stream_batch_seconds_count", "phase") == {"add_batch", "trigger_execution"}
    assert query.figures.value("gamelake_stream_batch_seconds_sum", phase="trigger_execution") == 1


def test_a_querys_life_is_reported(tmp_path: Path) -> None:
    beat = tmp_path / "heartbeat"
    query = Query(heartbeat=beat)
    query.telemetry.started()
    assert beat.exists()
    assert query.figures.value("gamelake_stream_up") == 1
    assert query.figures.value("gamelake_stream_started_timestamp_seconds") > NOON - 10**9

    beat.unlink()
    query.telemetry.idled()
    assert beat.exists()
    beat.unlink()
    query.telemetry.progressed(StreamProgress({}, left=0))
    assert beat.exists()
    beat.unlink()
    query.telemetry.terminated()

    assert not beat.exists()
    assert query.figures.value("gamelake_stream_up") == 0


def test_a_heart_that_can_not_beat_does_not_stop_the_stream(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    query = Query(heartbeat=tmp_path / "no" / "such" / "folder")

    query.telemetry.idled()
    query.telemetry.idled()

    assert query.figures.value("gamelake_stream_last_progress_timestamp_seconds") > 0
    (failed,) = logged(caplog, "telemetry_failed")
    assert "the stream continues" in str(failed["action"])


def test_a_batch_that_can_not_be_understood_does_not_stop_the_stream() -> None:
    query = Query()

    query.take(msgspec.structs.replace(batch(0, NOON, {"archery": (10, NOON)}), tables=None))

    assert query.telemetry.lag.behind() == {}


def test_the_newest_event_of_a_game_never_goes_back_and_never_lies_in_the_future() -> None:
    games = Games()
    games.count(batch(0, NOON, {"archery": (5, NOON - 60), "bingo": (5, NOON + 7200)}))
    assert games.last_event == {"archery": NOON - 60, "bingo": NOON}

    games.count(batch(1, NOON + 10, {"archery": (5, NOON - 86_400)}))

    assert games.last_event == {"archery": NOON - 60, "bingo": NOON}


def test_a_start_knows_the_games_of_the_last_batches_but_does_not_count_them_again() -> None:
    figures = Query(batch(7, NOON, {"archery": (5, NOON - 60)})).figures

    assert figures.value("gamelake_game_last_event_timestamp_seconds", game="archery") == NOON - 60
    assert figures.value("gamelake_stream_records_total") == 0


def test_every_commit_asks_for_a_poll_of_kafka() -> None:
    query = Query()
    asked: list[int] = []
    query.telemetry.on_commit = lambda: asked.append(1)

    query.take(batch(0, NOON, {"archery": (5, NOON)}))

    assert asked == [1]
