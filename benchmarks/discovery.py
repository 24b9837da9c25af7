"""Measures the discovery of new files in a bucket, by the size of the bucket: `python -m benchmarks.discovery`.

It compares notifications with Spark's file source, on the object store of the running stack, in a temporary bucket.
The measured time ends when a batch knows the names of its ten new objects. For the file source that is its listing
(`latestOffset`, `getBatch`), once for each batch of ten. For notifications it is reading the topic's end offsets and
the notifications, and the choice of new objects, with all objects of the bucket remembered. Draws docs/discovery.svg
with --docs.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.bucket import FOLDER, BenchmarkBucket, own_bucket
from benchmarks.chart import ChartBar, bar_chart
from benchmarks.steady import test_bed
from benchmarks.workload import RecordsMissingError, Workload
from gamelake.kafka import KafkaAccess
from gamelake.session import spark_session
from gamelake.storage.manifests import BatchManifest, EventsFile
from gamelake.storage.store import Location, Store
from gamelake.streaming.checkpoint import CheckpointFolder
from gamelake.streaming.dedup_window import DedupLimits, DedupWindow
from gamelake.streaming.files.changes import ObjectChange, publish
from gamelake.streaming.files.chooser import Chooser, OverwritePolicy
from gamelake.streaming.files.decider import write_identities
from gamelake.streaming.kafka_source import SourceTopic
from tools import stack
from tools.embedded.kafka import create_topic

_TOPIC, _STREAM = "files.notifications", "discovery"
_NEW = 10
_AT_ONCE = 50_000
_SEED = "00" * 16
_COLUMNS = ["partition", "offset", "timestamp", "value"]


def main() -> int:
    """Measure, and print the results as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.discovery", description=__doc__)
    parser.add_argument("--objects", type=int, nargs="+", default=[1_000, 10_000, 100_000], help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=5, help="for each size; default: %(default)s")
    parser.add_argument("--burst", type=int, default=1_000_000, help="notifications at once; default: %(default)s")
    parser.add_argument("--docs", type=Path, help="where to draw the chart")
    arguments = parser.parse_args()
    os.environ["AWS_SHARED_CREDENTIALS_FILE"] = str(stack.SECRETS / "object-store-root")
    with test_bed("discovery") as workload, own_bucket() as bucket:
        create_topic(workload.bootstrap_servers, _TOPIC, 2)
        spark = spark_session(_STREAM, bucket.location, workload.spark_jars)
        bench = Bench(workload, bucket, spark, NotificationChooser(workload, bucket))
        found = [bench.measure(size, arguments.rounds) for size in arguments.objects]
        burst = bench.burst(arguments.burst)
        spark.stop()
    if arguments.docs:
        (arguments.docs / "discovery.svg").write_text(draw(found), encoding="utf-8")
    print(json.dumps({"sizes": [each.figures for each in found], "burst": burst}, indent=2))
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryTimes:
    """Time to find ten new objects in a bucket with `objects` objects, in milliseconds for each round."""

    objects: int
    listing: Sequence[float]
    notifications: Sequence[float]

    @property
    def figures(self) -> Mapping[str, float]:
        """Medians in milliseconds, and their ratio."""
        listing, ours = median(self.listing), median(self.notifications)
        return {
            "objects": self.objects,
            "listing_ms": round(listing),
            "notifications_ms": round(ours, 1),
            "times": round(listing / ours, 1),
        }


class NotificationChooser:
    """The driver's processing of a batch of notifications before objects are read, with its duration."""

    def __init__(self, workload: Workload, bucket: BenchmarkBucket) -> None:
        self.milliseconds = 0.0
        self.objects = 0
        self._store = Store(Location(uri=workload.directory.resolve().as_uri()))
        self._topic = SourceTopic(KafkaAccess(workload.bootstrap_servers), _TOPIC)
        self._checkpoint = CheckpointFolder(self._store, "checkpoints/notifications", _TOPIC)
        self._chooser = Chooser(bucket.name, f"{FOLDER}/", OverwritePolicy.READ, self._store)
        self._window = DedupWindow(self._store, _STREAM, DedupLimits(window=timedelta(days=14), events=10**9))
        self._batches = 0

    def __call__(self, planning: DataFrame, batch_id: int) -> None:
        """Choose new objects; remembering them for later batches is not measured."""
        started = time.perf_counter()
        planned = self._checkpoint.planned(batch_id)
        notifications = self._topic.batch(planning, planned).read().select(_COLUMNS).combine_chunks()
        dedup = self._window.plan(_SEED, self._batches)
        chosen = self._chooser.choose(notifications, dedup)
        self.milliseconds = (time.perf_counter() - started) * 1000
        self.objects += len(chosen.objects)
        events = tuple(write_identities(self._store, chosen, dedup))
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
    """The bucket, the topic of its notifications, and the Spark session of both approaches."""

    workload: Workload
    bucket: BenchmarkBucket
    spark: SparkSession
    choosing: NotificationChooser

    def measure(self, size: int, rounds: int) -> DiscoveryTimes:
        """Fill the bucket to `size` objects, then measure the discovery of ten more, by both approaches."""
        started = time.perf_counter()
        self._send(self.bucket.fill(size - self.bucket.put))
        print(f"{size:,} objects after {time.perf_counter() - started:.0f} s", file=sys.stderr)
        listed = self._listings(size, rounds)
        figures = []
        with self._running(self._notifications(), "notifications", self.choosing) as query:
            for _ in range(rounds):
                planned = self._round(query)
                figures.append(planned + self.choosing.milliseconds)
        if self.choosing.objects != self.bucket.put:
            raise RecordsMissingError(f"{self.choosing.objects:,} of {self.bucket.put:,} objects were found")
        found = DiscoveryTimes(objects=size, listing=listed, notifications=figures)
        print(json.dumps(found.figures), file=sys.stderr)
        return found

    def _listings(self, size: int, rounds: int) -> Sequence[float]:
        """Milliseconds of the file source for each batch of ten objects, after its warm-up.

        All objects of the bucket are new to it; in one batch it would request the metadata of each of them before the
        first round. It caches no listing: a cached one has no later objects.
        """
        options = {"maxFilesPerTrigger": str(_NEW), "maxCachedFiles": "0"}
        files = self.spark.readStream.options(**options).text(f"{self.bucket.location.uri}/{FOLDER}/")
        query = self._started(files, f"listing-{size}", lambda *_: None)
        try:
            while len(batches := _with_data(query)) < 1 + rounds and not query.awaitTermination(1):
                pass
        finally:
            query.stop()
        return [_planning(each) for each in batches[1 : 1 + rounds]]

    def burst(self, count: int) -> Mapping[str, float]:
        """Send the same notification `count` times; returns the time to process them."""
        change = self.bucket.fill(1)[0]
        self._send(replace(change, moment=datetime.now(UTC)) for _ in range(count))
        before, started = self.choosing.objects, time.perf_counter()
        with self._running(self._notifications(), "notifications", self.choosing):
            seconds = time.perf_counter() - started
        return {"notifications": count, "objects": self.choosing.objects - before, "seconds": round(seconds, 1)}

    def _notifications(self) -> DataFrame:
        return SourceTopic(KafkaAccess(self.workload.bootstrap_servers), _TOPIC).stream(self.spark, _AT_ONCE)

    def _send(self, changes: Iterable[ObjectChange]) -> None:
        publish(Producer({"bootstrap.servers": self.workload.bootstrap_servers, "acks": "all"}), _TOPIC, changes)

    @contextmanager
    def _running(
        self, source: DataFrame, name: str, body: Callable[[DataFrame, int], None]
    ) -> Iterator[StreamingQuery]:
        """A query that has processed all present records."""
        query = self._started(source, name, body)
        try:
            query.processAllAvailable()
            yield query
        finally:
            query.stop()

    def _started(self, source: DataFrame, name: str, body: Callable[[DataFrame, int], None]) -> StreamingQuery:
        checkpoint = str(self.workload.directory / "checkpoints" / name)
        return source.writeStream.foreachBatch(body).option("checkpointLocation", checkpoint).start()

    def _round(self, query: StreamingQuery) -> float:
        """Put ten objects and send their notifications; returns the planning time (ms) of their batch."""
        before = _last_batch(query)
        self._send(self.bucket.fill(_NEW))
        query.processAllAvailable()
        # A poll without new records may come first; the batch with records counts.
        return _planning([each for each in _with_data(query) if each.batchId > before][-1])


def _with_data(query: StreamingQuery) -> Sequence[StreamingQueryProgress]:
    """The last batches with records."""
    return [each for each in query.recentProgress if "addBatch" in each.durationMs]


def _planning(batch: StreamingQueryProgress) -> float:
    return float(batch.durationMs.get("latestOffset", 0) + batch.durationMs.get("getBatch", 0))


def _last_batch(query: StreamingQuery) -> int:
    return max((each.batchId for each in _with_data(query)), default=-1)


def draw(found: Sequence[DiscoveryTimes]) -> str:
    """The chart: milliseconds for each size and approach."""
    bars = []
    for each in found:
        for kind, label, values in (("peer", "listing", each.listing), ("ours", "notifications", each.notifications)):
            named = f"{each.objects:,} objects, {label}"
            bars.append(ChartBar(label=named, value=median(values), least=min(values), greatest=max(values), kind=kind))
    note = "milliseconds until ten new objects are known, median with least and greatest; less is better"
    return bar_chart("Finding new files in a bucket", note, bars)


if __name__ == "__main__":
    sys.exit(main())
