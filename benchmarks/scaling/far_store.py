"""Measures what a batch of many tables costs on a store that is far away: `python -m benchmarks.scaling.far_store`.

The store is the stack's, or the one that the tests' variables name (`tests/stack/object_store.py`); a proxy makes it
far (`tests/stack/latency_proxy.py`). One task writes a file for each table; the driver's own code then decides and
commits a batch of all tables, without Spark and Kafka (`benchmarks/year/stream.py`). Each number of requests at once
has its turn in each round.
"""

import argparse
import time
from dataclasses import replace
from datetime import UTC, datetime
from statistics import median

import pyarrow as pa

from benchmarks.stopwatch import machine_cpu_seconds, process_cpu_seconds
from benchmarks.year.listings import Listings
from benchmarks.year.plan import SimulatedClock, YearPlan
from benchmarks.year.stream import YearStream
from gamelake.layers.silver import COMMON_SCHEMA
from gamelake.model.games import load_games
from gamelake.model.naming import game_table
from gamelake.storage.store import Location, Store
from gamelake.streaming.chunk import ChunkWriter, TableDay
from tests.stack.latency_proxy import FarStore, Latency, far_store
from tests.stack.object_store import ROOT, ObjectStore

_WARM_UP = 2
_ROWS = 10
_HEAD = (
    "requests at once",
    "files of a task",
    "decision",
    "commits",
    "decision and commits",
    "CPU of the driver",
    "CPU of the proxy",
    "CPU of the machine",
    "its requests",
)


def task_seconds(place: Location, tables: int) -> float:
    """How long a task takes to encode and write one file for each table."""
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


def measure(far: FarStore, places: dict[int, tuple[Location, Location]], tables: int, rounds: int) -> None:
    """Print a row for each number of requests at once."""
    plan = YearPlan(tables=tables)
    clock = SimulatedClock(plan)
    clock.next_batch()
    streams = {
        at_once: YearStream(place, plan, clock, Listings(), files=near) for at_once, (place, near) in places.items()
    }
    samples: dict[int, list[tuple[float, ...]]] = {at_once: [] for at_once in streams}
    for number in range(_WARM_UP + rounds):
        for at_once, stream in streams.items():
            files = task_seconds(places[at_once][0], tables)
            stream.prepare(number)
            far.count_anew()
            machine, proxy = machine_cpu_seconds(), process_cpu_seconds(far.pid)
            sample = stream.run_prepared(number)
            cpu = sample.cpu_seconds, process_cpu_seconds(far.pid) - proxy, machine_cpu_seconds() - machine
            if number >= _WARM_UP:
                samples[at_once].append((files, sample.decide_seconds, sample.commit_seconds, *cpu, far.requests))
    print(f"{tables} tables, medians of {rounds} rounds (least to greatest), seconds")
    print(f"| {' | '.join(_HEAD)} |\n| {' | '.join('---' for _ in _HEAD)} |")
    for at_once, found in samples.items():
        times = [spread([each[part] for each in found]) for part in range(3)]
        whole = spread([decide + commit for _, decide, commit, *_ in found])
        busy = (f"{median([each[part] for each in found]):.2f}" for part in (3, 4, 5))
        requests = median([each[6] for each in found])
        print(f"| {at_once} | {' | '.join(times)} | {whole} | {' | '.join(busy)} | {requests:.0f} |")
    for stream in streams.values():
        stream.__exit__(None, None, None)


def spread(values: list[float]) -> str:
    """The median, the least and the greatest."""
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--at-once", type=int, nargs="+", default=[8, 64])
    parser.add_argument("--milliseconds", type=float, nargs=2, default=[40, 100], help="usual, and of 1 %%")
    arguments = parser.parse_args()
    store = ObjectStore.of_the_tests()
    usual, slow = (each / 1_000 for each in arguments.milliseconds)
    with store.new_bucket() as bucket, far_store(store.endpoint, Latency(usual, slow)) as far:
        places = {}
        for at_once in arguments.at_once:
            uri = f"s3://{bucket}/lake-{at_once}"
            place = replace(store.at(far.url).location(uri), at_once=at_once)
            places[at_once] = (place, store.location(uri))
        measure(far, places, arguments.tables, arguments.rounds)


if __name__ == "__main__":
    main()
