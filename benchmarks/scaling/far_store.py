"""Measures what a batch of many tables costs on a store that is far away: `python -m benchmarks.scaling.far_store`.

The store is the stack's, or the one that the tests' variables name (`tests/stack/object_store.py`); a proxy makes it
far (`tests/stack/latency_proxy.py`). One task writes a file for each table; the driver's own code then decides and
commits a batch of all tables, without Spark and Kafka (`benchmarks/year/stream.py`). Each number of requests at once
has its turn in each round.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

import pyarrow as pa

from benchmarks.harness import Benchmark, Run, alternate, main, option
from benchmarks.results import Measurement, Values
from benchmarks.stopwatch import machine_cpu_seconds, process_cpu_seconds
from benchmarks.year.listings import Listings
from benchmarks.year.plan import SimulatedClock, YearPlan
from benchmarks.year.stream import YearStream
from gamelake.contract.games import load_games
from gamelake.layers.silver import COMMON_SCHEMA
from gamelake.model.naming import game_table
from gamelake.objects.store import Location, Store
from gamelake.streaming.tasks.chunk import ChunkWriter, TableDay
from tests.stack.latency_proxy import FarStore, Latency, far_store
from tests.stack.object_store import ROOT, ObjectStore

_WARM_UP = 2
_ROWS = 10


def task_seconds(place: Location, tables: int) -> float:
    """Return how long a task takes to encode and write one file for each table."""
    writer = ChunkWriter(Store(place), load_games(ROOT / "contracts/games.yaml"), threads=2)
    rows = pa.RecordBatch.from_arrays([pa.nulls(_ROWS, each.type) for each in COMMON_SCHEMA], schema=COMMON_SCHEMA)
    day = (datetime.now(UTC) - datetime(1970, 1, 1, tzinfo=UTC)).days
    for number in range(tables):
        writer.add(TableDay(game_table(f"game_{number:04d}"), day), rows, 1)
    started = time.perf_counter()
    written = writer.write()
    seconds = time.perf_counter() - started
    assert len(written) == tables  # noqa: S101 # one file for each
    return seconds


@dataclass(frozen=True, slots=True)
class FarStoreSettings:
    """Options of the benchmark."""

    tables: int = option(1_000, "tables of a batch")
    rounds: int = option(5, "rounds of each number of requests")
    at_once: tuple[int, ...] = option((8, 64), "requests at once")
    milliseconds: tuple[float, ...] = option((40.0, 100.0), "delay of a request, and of one in a hundred")


def measure(run: Run[FarStoreSettings]) -> Iterator[Measurement]:
    """Decide and commit batches with each number of requests at once in turn."""
    settings, store = run.settings, ObjectStore.of_the_tests()
    usual, slow = (each / 1_000 for each in settings.milliseconds)
    plan = YearPlan(tables=settings.tables)
    clock = SimulatedClock(plan)
    clock.next_batch()
    with store.new_bucket() as bucket, far_store(store.endpoint, Latency(usual, slow)) as far, ExitStack() as streams:
        ways = {}
        for at_once in settings.at_once:
            uri = f"s3://{bucket}/lake-{at_once}"
            place = replace(store.at(far.url).location(uri), at_once=at_once)
            stream = YearStream(place, plan, clock, Listings(), files=store.location(uri))
            streams.enter_context(stream)
            ways[f"{at_once} requests at once"] = partial(_batch, far, stream, place, settings.tables)
        yield from alternate("a batch", ways, settings.rounds, run.emit, _WARM_UP)


def _batch(far: FarStore, stream: YearStream, place: Location, tables: int, number: int) -> Values:
    files = task_seconds(place, tables)
    batch = number + _WARM_UP - 1
    stream.prepare(batch)
    far.count_anew()
    machine, proxy = machine_cpu_seconds(), process_cpu_seconds(far.pid)
    sample = stream.run_prepared(batch)
    return {
        "decision and commits s": sample.decide_seconds + sample.commit_seconds,
        "files of a task s": files,
        "decision s": sample.decide_seconds,
        "commits s": sample.commit_seconds,
        "CPU s of the driver": sample.cpu_seconds,
        "CPU s of the proxy": process_cpu_seconds(far.pid) - proxy,
        "CPU s of the machine": machine_cpu_seconds() - machine,
        "requests": far.requests,
    }


BENCHMARK = Benchmark(
    name="scaling-far-store",
    measures="Measure what a batch of many tables costs on a store that is far away.",
    settings=FarStoreSettings(),
    quick=FarStoreSettings(tables=20, rounds=1),
    measure=measure,
)


if __name__ == "__main__":
    sys.exit(main(BENCHMARK))
