"""Streams whose batches are decided without Spark, and a store that fails at a given write."""

from pathlib import Path
from typing import Any, cast

from gamelake.ledger.generations import Generation
from gamelake.ledger.held_tables import stream_tables
from gamelake.ledger.manifests import BatchManifest
from gamelake.model.failpoints import Failpoints
from gamelake.objects.store import Location, Store
from gamelake.streaming.driver.batch import FanOut, OpenStream
from gamelake.streaming.driver.flood import FloodBreaker, FloodLimit
from gamelake.streaming.driver.observers import BatchObserver
from gamelake.streaming.driver.stream import Stream
from tests.support.manifests import a_manifest, offsets_of

TOPIC, TOPIC_ID, NEW_TOPIC_ID = "events", "topic-1", "topic-2"


class StandingTopic:
    """A topic that is never made again, for a decider that reads no records."""

    def id(self) -> str:
        """Always the same."""
        return TOPIC_ID

    def batch(self, planning: object, _: object) -> object:
        return planning


class FailingStore(Store):
    """A store in front of which the process dies: the n-th write and all after it do not happen."""

    def __init__(self, location: Location, writes: int) -> None:
        super().__init__(location)
        self._left = writes

    def die_after(self, writes: int) -> None:
        """Count from here."""
        self._left = writes

    def put(self, path: str, content: bytes) -> None:
        """Write, as long as there are writes left."""
        self._count()
        super().put(path, content)

    def put_new(self, path: str, content: bytes) -> bool:
        """Write, as long as there are writes left."""
        self._count()
        return super().put_new(path, content)

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise ConnectionError("the process died")


def location_of(folder: Path) -> Location:
    return Location(uri=folder.as_uri())


def a_stream(folder: Path, topic: str = TOPIC) -> Stream:
    return stream_in(Store(location_of(folder)), topic)


def stream_in(store: Store, topic: str = TOPIC) -> Stream:
    return Stream(store, "ingest", topic)


def manifest_of(generation: Generation, batch_id: int, **fields: Any) -> BatchManifest:  # noqa: ANN401 # as fields
    """Return the manifest of a batch of a generation, with other values in some fields."""
    return a_manifest(
        stream=generation.stream,
        query_id=generation.query_id,
        generation=generation.number,
        batch_id=batch_id,
        topic=generation.topic,
        topic_id=generation.topic_id,
        **fields,
    )


def decide(stream: Stream, generation: Generation, batch_id: int, last: int, partition: int = 0) -> BatchManifest:
    """Settle a batch of ten records that ends at an offset."""
    return stream.manifests.settle(manifest_of(generation, batch_id, offsets=(offsets_of(last - 9, last, partition),)))


def run_batch(folder: Path, decider: object, *observers: BatchObserver, batch: int = 0, records: int = 1) -> None:
    """Run a batch by a new driver, whose decider reads no records."""
    stream = a_stream(folder)
    generation = stream.open(TOPIC_ID)
    log_batch(folder, generation, batch, {0: records})
    with stream_tables(location_of(folder)) as tables:
        source = OpenStream(stream, generation, tables, cast("Any", StandingTopic()))
        breaker = FloodBreaker(FloodLimit(1, 1))
        driver = FanOut(source, cast("Any", decider), breaker, Failpoints(), observers=observers)
        driver(cast("Any", None), batch)


def log_batch(folder: Path, generation: Generation, batch_id: int, offsets: dict[int, int], topic: str = TOPIC) -> None:
    """Write a batch into a checkpoint's logs as Spark does."""
    root = folder / generation.checkpoint
    partitions = ",".join(f'"{partition}":{offset}' for partition, offset in offsets.items())
    metadata = '{"batchWatermarkMs":0,"batchTimestampMs":1767268800000,"conf":{"spark.sql.shuffle.partitions":"2"}}'
    for log, lines in (
        ("offsets", ["v1", metadata, f'{{"{topic}":{{{partitions}}}}}']),
        ("commits", ["v1", '{"nextBatchWatermarkMs":0}']),
    ):
        (root / log).mkdir(parents=True, exist_ok=True)
        (root / log / str(batch_id)).write_text("\n".join(lines), encoding="utf-8")
        (root / log / f".{batch_id}.crc").write_bytes(b"crc")
