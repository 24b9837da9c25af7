"""Measures what it costs to find new files in a bucket, by how many it holds: `python -m benchmarks.discovery`.

Against Spark's own file source, in one run, on the object store of the running stack, in a bucket of its own. A round
puts ten objects there; what counts is the time until their names are known to the batch. For the file source that is
its listing (`latestOffset`, `getBatch`); for notifications it is the look at the topic's ends, the reading of what they
say, and the choice of what is new, with all objects of the bucket remembered. Draws docs/discovery.svg with --docs.
"""

import argparse
import json
import os
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

import obstore
from confluent_kafka import Producer
from minio import Minio
from obstore.store import ObjectStore as Objects
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.chart import Bar, bar_chart
from benchmarks.steady import steady_bed
from benchmarks.way import RecordsMissingError, Workload
from gamelake.fanout.source import Topic
from gamelake.fanout.window import DedupLimits, DedupWindow
from gamelake.files.choosing import Chooser, Overwritten
from gamelake.files.deciding import remembered
from gamelake.files.saying import Change, tell
from gamelake.kafka import KafkaAccess
from gamelake.lake.manifest import BatchManifest, EventsFile
from gamelake.lake.store import Location, Store, open_objects
from gamelake.session import spark_session
from services.desk import stack
from services.embedded.topics import create_topic

_TOPIC, _FOLDER, _STREAM = "files.notifications", "files", "discovery"
_NEW = 10
_PUTS_AT_ONCE = 16
_AT_ONCE = 50_000
_SEED = "00" * 16
_COLUMNS = ("partition", "offset", "timestamp", "value")


def main() -> int:
    """Measure, and print what was found as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.discovery", description=__doc__)
    parser.add_argument("--objects", type=int, nargs="+", default=[1_000, 10_000, 100_000], help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=5, help="for each size; default: %(default)s")
    parser.add_argument("--burst", type=int, default=1_000_000, help="notifications at once; default: %(default)s")
    parser.add_argument("--docs", type=Path, help="where to draw the chart")
    arguments = parser.parse_args()
    os.environ["AWS_SHARED_CREDENTIALS_FILE"] = str(stack.SECRETS / "object-store-root")
    with steady_bed("discovery") as workload, own_bucket() as bucket:
        create_topic(workload.bootstrap_servers, _TOPIC, 2)
        spark = spark_session(_STREAM, bucket.location, workload.spark_jars)
        bench = Bench(workload, bucket, spark, Choosing(workload, bucket))
        found = [bench.measure(size, arguments.rounds) for size in arguments.objects]
        burst = bench.burst(arguments.burst)
        spark.stop()
    if arguments.docs:
        (arguments.docs / "discovery.svg").write_text(draw(found), encoding="utf-8")
    print(json.dumps({"sizes": [each.told for each in found], "burst": burst}, indent=2))
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What finding ten new objects took among so many, in milliseconds for each round."""

    objects: int
    listing: Sequence[float]
    notifications: Sequence[float]

    @property
    def told(self) -> Mapping[str, float]:
        """The figures: medians in milliseconds, and how many times one is the other."""
        listing, ours = median(self.listing), median(self.notifications)
        return {
            "objects": self.objects,
            "listing_ms": round(listing),
            "notifications_ms": round(ours, 1),
            "times": round(listing / ours, 1),
        }


@dataclass
class Bucket:
    """A bucket that objects are put into, and remembered by their names and contents."""

    name: str
    location: Location
    objects: Objects
    put: int = 0
    etags: dict[str, str] = field(default_factory=dict)

    def fill(self, count: int) -> list[Change]:
        """Put so many more objects there; gives what would be told of them."""
        keys = [f"{_FOLDER}/{number:08d}.json" for number in range(self.put, self.put + count)]
        self.put += count
        with ThreadPoolExecutor(_PUTS_AT_ONCE) as pool:
            etags = list(pool.map(self._put, keys))
        now = datetime.now(UTC)
        return [
            Change(bucket=self.name, key=key, etag=etag, size=2, moment=now)
            for key, etag in zip(keys, etags, strict=True)
        ]

    def _put(self, key: str) -> str:
        return (obstore.put(self.objects, key, b"{}\n").get("e_tag") or "").strip('"')


@contextmanager
def own_bucket() -> Iterator[Bucket]:
    """A bucket of the stack's object store that goes with the block."""
    name, root = f"discovery-{uuid.uuid4().hex}", stack.lakehouse("root")
    options = dict(root.options)
    client = Minio(
        urlsplit(options["AWS_ENDPOINT_URL"]).netloc,
        options["AWS_ACCESS_KEY_ID"],
        options["AWS_SECRET_ACCESS_KEY"],
        secure=False,
        region="us-east-1",
    )
    client.make_bucket(name)
    location = Location(uri=f"s3://{name}", options=options)
    objects = open_objects(location)
    try:
        yield Bucket(name, location, objects)
    finally:
        for batch in obstore.list(objects):
            obstore.delete(objects, [each["path"] for each in batch])
        client.remove_bucket(name)


class Choosing:
    """What the driver does with a batch of notifications before anybody reads an object, and how long that takes."""

    def __init__(self, workload: Workload, bucket: Bucket) -> None:
        self.milliseconds = 0.0
        self.objects = 0
        self._store = Store(Location(uri=(workload.directory / "lake").resolve().as_uri()))
        self._chooser = Chooser(bucket.name, f"{_FOLDER}/", Overwritten.READ, self._store)
        self._window = DedupWindow(self._store, _STREAM, DedupLimits(window=timedelta(days=14), events=10**9))
        self._batches = 0

    def __call__(self, records: DataFrame, _: int) -> None:
        """Choose; what is new is remembered for the batches to come, which is not counted."""
        started = time.perf_counter()
        notifications = records.select(*_COLUMNS).toArrow().combine_chunks()
        dedup = self._window.plan(_SEED, self._batches)
        chosen = self._chooser.choose(notifications, dedup)
        self.milliseconds = (time.perf_counter() - started) * 1000
        self.objects += len(chosen.objects)
        events = tuple(remembered(self._store, chosen, dedup))
        self._window.took(_manifest(self._batches, events))
        self._batches += 1


def _manifest(batch: int, events: tuple[EventsFile, ...]) -> BatchManifest:
    return BatchManifest(
        stream=_STREAM,
        query_id=_STREAM,
        generation=0,
        batch_id=batch,
        topic=_TOPIC,
        topic_id="",
        written_at="",
        offsets=(),
        tables=(),
        dead_letters={},
        events=events,
    )


@dataclass(frozen=True, slots=True)
class Bench:
    """The bucket, the topic that tells of it, and the Spark that both ways run on."""

    workload: Workload
    bucket: Bucket
    spark: SparkSession
    choosing: Choosing

    def measure(self, size: int, rounds: int) -> Found:
        """Fill the bucket up, then find ten more objects again and again, by either way."""
        started = time.perf_counter()
        self._tell(self.bucket.fill(size - self.bucket.put))
        print(f"{size:,} objects after {time.perf_counter() - started:.0f} s", file=sys.stderr)
        files = self.spark.readStream.text(f"{self.bucket.location.uri}/{_FOLDER}/")
        with self._running(files, f"listing-{size}", lambda *_: None) as query:
            listed = [self._round(query) for _ in range(rounds)]
        told = []
        with self._running(self._notifications(), "notifications", self.choosing) as query:
            for _ in range(rounds):
                planned = self._round(query)
                told.append(planned + self.choosing.milliseconds)
        if self.choosing.objects != self.bucket.put:
            raise RecordsMissingError(f"{self.choosing.objects:,} of {self.bucket.put:,} objects were found")
        found = Found(objects=size, listing=listed, notifications=told)
        print(json.dumps(found.told), file=sys.stderr)
        return found

    def burst(self, count: int) -> Mapping[str, float]:
        """Have the topic say again what it has said before, so many times; gives what looking through it takes."""
        change = self.bucket.fill(1)[0]
        self._tell(replace(change, moment=datetime.now(UTC)) for _ in range(count))
        before, started = self.choosing.objects, time.perf_counter()
        with self._running(self._notifications(), "notifications", self.choosing):
            seconds = time.perf_counter() - started
        return {"notifications": count, "objects": self.choosing.objects - before, "seconds": round(seconds, 1)}

    def _notifications(self) -> DataFrame:
        return Topic(KafkaAccess(self.workload.bootstrap_servers), _TOPIC).records(self.spark, _AT_ONCE)

    def _tell(self, changes: Iterable[Change]) -> None:
        tell(Producer({"bootstrap.servers": self.workload.bootstrap_servers, "acks": "all"}), _TOPIC, changes)

    @contextmanager
    def _running(
        self, source: DataFrame, name: str, body: Callable[[DataFrame, int], None]
    ) -> Iterator[StreamingQuery]:
        """A query that has taken everything there is."""
        checkpoint = str(self.workload.directory / "checkpoints" / name)
        query = source.writeStream.foreachBatch(body).option("checkpointLocation", checkpoint).start()
        try:
            query.processAllAvailable()
            yield query
        finally:
            query.stop()

    def _round(self, query: StreamingQuery) -> float:
        """Put objects there, tell of them; gives what the planning of the batch that has them took (ms)."""
        before = _last_batch(query)
        self._tell(self.bucket.fill(_NEW))
        query.processAllAvailable()
        planned = [each for each in query.recentProgress if each.batchId > before and "addBatch" in each.durationMs]
        # Where the look that found nothing yet was on its way, the one that found something counts.
        durations = planned[-1].durationMs
        return float(durations.get("latestOffset", 0) + durations.get("getBatch", 0))


def _last_batch(query: StreamingQuery) -> int:
    return max((each.batchId for each in query.recentProgress if "addBatch" in each.durationMs), default=-1)


def draw(found: Sequence[Found]) -> str:
    """The chart: milliseconds for each size, by either way."""
    bars = []
    for each in found:
        for kind, label, values in (("peer", "listing", each.listing), ("ours", "notifications", each.notifications)):
            named = f"{each.objects:,} objects, {label}"
            bars.append(Bar(label=named, value=median(values), least=min(values), greatest=max(values), kind=kind))
    note = "milliseconds until ten new objects are known, median with least and greatest; less is better"
    return bar_chart("Finding new files in a bucket", note, bars)


if __name__ == "__main__":
    sys.exit(main())
