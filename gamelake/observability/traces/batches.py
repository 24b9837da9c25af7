"""The spans of traced events in the batches of a stream: waiting in Kafka, the tasks, the commit."""

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from threading import BoundedSemaphore
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gamelake.ledger.manifests import BatchManifest
from gamelake.model.logs import event_logger
from gamelake.model.naming import SILVER_EVENTS
from gamelake.model.options import TraceOptions
from gamelake.objects.store import Store
from gamelake.observability.traces.spans import EventSample, EventSpan, SpanExporter
from gamelake.streaming.driver.observers import BatchObserver

log = event_logger(__name__)

# A stream that is behind is not slowed by its traces: batches beyond these are not traced.
_MAX_WAITING_BATCHES = 10
_MAX_EVENTS_OF_BATCH = 200
_ROWS_AT_ONCE = 65_536
_COLUMNS = ["event_id", "game_name", "ingest_time", "kafka_partition", "kafka_offset"]
_NANOS = 10**9


@dataclass(frozen=True, slots=True)
class CommittedBatch:
    """A batch that all tables have; its times are in nanoseconds since 1970."""

    manifest: BatchManifest
    began: int
    decided: int
    committed: int


class BatchTracer(BatchObserver):
    """Exports the spans of traced events in a thread of its own: it reads their ids from the files of `silver/events`.

    Duplicates and rejected events are in no such file: their traces end at the gateway.
    """

    def __init__(self, store: Store, sample: EventSample, exporter: SpanExporter, pool: ThreadPoolExecutor) -> None:
        self._store = store
        self._sample = sample
        self._exporter = exporter
        self._pool = pool
        self._free = BoundedSemaphore(_MAX_WAITING_BATCHES)

    def batch_committed(self, manifest: BatchManifest, decide_seconds: float, commit_seconds: float) -> None:
        """Trace a batch soon, unless too many wait."""
        if not self._free.acquire(blocking=False):
            log.warning("batch_not_traced", batch=manifest.batch_id, reason="the traces of other batches wait")
            return
        committed = time.time_ns()
        decided = committed - int(commit_seconds * _NANOS)
        batch = CommittedBatch(manifest, decided - int(decide_seconds * _NANOS), decided, committed)
        self._pool.submit(self._trace, batch)

    def _trace(self, batch: CommittedBatch) -> None:
        try:
            for event in islice(self._events(batch.manifest), _MAX_EVENTS_OF_BATCH):
                for span in spans_of(event, batch):
                    self._exporter.export(span)
        except Exception:  # traces must not stop the stream
            log.exception("batch_not_traced", batch=batch.manifest.batch_id, reason="its files were not read")
        finally:
            self._free.release()

    def _events(self, manifest: BatchManifest) -> Iterator[Mapping[str, Any]]:
        for entry in manifest.tables:
            for file in entry.files if entry.table == SILVER_EVENTS else ():
                content = self._store.get(f"{entry.table}/{file.path}")
                if content is not None:
                    yield from traced_rows(content, self._sample)


def traced_rows(content: bytes, sample: EventSample) -> Iterator[Mapping[str, Any]]:
    """Yield the identity, game and time of the traced events of a file of `silver/events`, in the file's order."""
    file = pq.ParquetFile(pa.BufferReader(content))
    # Another company's message may have no ids.
    if "event_id" in file.schema_arrow.names:
        for rows in file.iter_batches(_ROWS_AT_ONCE, columns=_COLUMNS):
            yield from rows.filter(pc.ends_with(rows["event_id"], sample.ending)).to_pylist()


def spans_of(event: Mapping[str, Any], batch: CommittedBatch) -> Iterator[EventSpan]:
    """Yield the spans of one event of a batch, in the order of time.

    Args:
        event: a row of `traced_rows`.
        batch: the batch that it is in.
    """
    arrived: datetime = event["ingest_time"]
    attributes: dict[str, str | int] = {
        "gamelake.game": event["game_name"],
        "gamelake.stream": batch.manifest.stream,
        "gamelake.batch": batch.manifest.batch_id,
        "messaging.system": "kafka",
        "messaging.destination.name": batch.manifest.topic,
        "messaging.destination.partition.id": str(event["kafka_partition"]),
        "messaging.kafka.offset": event["kafka_offset"],
    }
    begins = (int(arrived.timestamp() * 10**6) * 1000, batch.began, batch.decided)
    ends = (batch.began, batch.decided, batch.committed)
    for name, start, end in zip(("wait in Kafka", "read and write files", "commit"), begins, ends, strict=True):
        # Kafka's clock is another machine's.
        yield EventSpan(
            event_id=str(event["event_id"]), name=name, start=min(start, end), end=end, attributes=attributes
        )


@contextmanager
def tracing_batches(options: TraceOptions, store: Store, service: str) -> Iterator[BatchObserver]:
    """Trace events of batches until the end of the block; without traces, an observer that does nothing.

    Raises:
        StartupError: traces are on, and OpenTelemetry is not installed.
    """
    if not options.are_wanted:
        yield BatchObserver()
        return
    exporter = SpanExporter.of(service)
    try:
        with ThreadPoolExecutor(1, thread_name_prefix="traces") as pool:
            yield BatchTracer(store, EventSample.of(options), exporter, pool)
    finally:
        exporter.close()
