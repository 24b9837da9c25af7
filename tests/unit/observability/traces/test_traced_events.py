"""The events that are traced are the same in each process, whatever the files of a batch have."""

import io
import re
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gamelake.delta.data_files import DataFile
from gamelake.delta.table_files import TableFiles
from gamelake.ledger.manifests import BatchManifest
from gamelake.model.environment import Environment
from gamelake.model.errors import SettingsError
from gamelake.model.naming import SILVER_EVENTS
from gamelake.model.options import TraceOptions, trace_options
from gamelake.objects.store import Location, Store
from gamelake.observability.traces.batches import BatchTracer, CommittedBatch, spans_of, traced_rows
from gamelake.observability.traces.spans import EventSample, EventSpan, SpanExporter
from tests.support.manifests import a_manifest

ARRIVED = datetime(2026, 11, 27, 10, 0, tzinfo=UTC)
IDS = [
    "11111111-1111-4111-8111-111111111100",
    "11111111-1111-4111-8111-111111111110",
    "11111111-1111-4111-8111-1111111111ff",
]


class CollectedSpans(SpanExporter):
    """Keeps the spans."""

    def __init__(self) -> None:
        self.spans: list[EventSpan] = []

    def export(self, span: EventSpan) -> None:
        self.spans.append(span)


def parquet(**columns: list[object]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


def events_file(ids: list[str]) -> bytes:
    return parquet(
        event_id=[*ids],
        game_name=["Archery"] * len(ids),
        ingest_time=[ARRIVED] * len(ids),
        kafka_partition=[1] * len(ids),
        kafka_offset=[*range(len(ids))],
        amount=[0.5] * len(ids),
    )


def manifest(*paths: str) -> BatchManifest:
    files = tuple(DataFile(path=path, size=1, rows=1, partition={}, statistics="{}") for path in paths)
    tables = tuple(
        TableFiles(table=table, partition_by=(), schema="", files=files)
        for table in (SILVER_EVENTS, "silver/archery_events")
    )
    return a_manifest(batch_id=7, tables=tables)


def test_one_event_in_so_many_is_one_whose_id_ends_with_zeros() -> None:
    content = events_file(IDS)

    chosen = {
        one_in: [row["event_id"] for row in traced_rows(content, EventSample.of(TraceOptions(one_in=one_in)))]
        for one_in in (1, 16, 256, 4096)
    }

    assert chosen == {1: IDS, 16: IDS[:2], 256: IDS[:1], 4096: []}


def test_a_sixteenth_of_random_events_is_traced() -> None:
    ids = [str(uuid.UUID(int=number * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128)) for number in range(16_000)]

    chosen = list(traced_rows(events_file(ids), EventSample.of(TraceOptions(one_in=16))))

    assert 900 < len(chosen) < 1100


@pytest.mark.parametrize("value", ["2", "17", "32", "-1", "268435457", "1.5", "all"])
def test_a_share_that_ids_cannot_have_is_refused_by_name(value: str) -> None:
    with pytest.raises(SettingsError, match=re.escape("GAMELAKE_TRACE_ONE_IN")):
        trace_options(Environment({"GAMELAKE_TRACE_ONE_IN": value}))


def test_no_event_is_traced_unless_asked_for() -> None:
    assert not trace_options(Environment({})).are_wanted


def test_events_without_ids_have_no_traces() -> None:
    content = parquet(game_name=["Archery"], ingest_time=[ARRIVED], kafka_partition=[1], kafka_offset=[0])

    assert list(traced_rows(content, EventSample(1))) == []


def test_an_event_of_a_clock_that_is_ahead_waits_for_no_time() -> None:
    row = {
        "event_id": IDS[0], "game_name": "Archery", "ingest_time": ARRIVED, "kafka_partition": 1, "kafka_offset": 0,
    }  # fmt: skip
    began = int((ARRIVED - timedelta(seconds=5)).timestamp()) * 10**9

    spans = list(spans_of(row, CommittedBatch(manifest(), began, began + 10, began + 30)))

    assert [(span.start - began, span.end - began) for span in spans] == [(0, 0), (0, 10), (10, 30)]


def test_the_events_of_a_batch_are_those_of_the_files_that_are_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store, collected = Store(Location(uri=f"file://{tmp_path}")), CollectedSpans()
    store.put(f"{SILVER_EVENTS}/a.parquet", events_file(IDS[:1]))
    store.put(f"{SILVER_EVENTS}/b.parquet", events_file(IDS[1:]))
    store.put(f"{SILVER_EVENTS}/damaged.parquet", b"PAR1")

    with ThreadPoolExecutor(1) as pool:
        tracer = BatchTracer(store, EventSample(0), collected, pool)
        tracer.batch_committed(manifest("damaged.parquet"), 1.0, 0.5)
        # Compaction and vacuum may have removed a file by then.
        tracer.batch_committed(manifest("a.parquet", "gone.parquet", "b.parquet"), 1.0, 0.5)

    assert [span.event_id for span in collected.spans] == [each for each in IDS for _ in range(3)]
    assert {span.name for span in collected.spans} == {"wait in Kafka", "read and write files", "commit"}
    assert "batch_not_traced" in caplog.text


def test_a_batch_has_traces_of_two_hundred_events_at_most(tmp_path: Path) -> None:
    store, collected = Store(Location(uri=f"file://{tmp_path}")), CollectedSpans()
    for name in ("a", "b"):
        store.put(f"{SILVER_EVENTS}/{name}.parquet", events_file(IDS * 60))

    with ThreadPoolExecutor(1) as pool:
        BatchTracer(store, EventSample(0), collected, pool).batch_committed(
            manifest("a.parquet", "b.parquet"), 1.0, 0.5
        )

    assert len(collected.spans) == 3 * 200
