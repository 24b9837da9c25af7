"""Measures a worker process that remembers the events of a whole window: `python -m benchmarks.scaling.dedup`.

The identity files of a window are written to a folder, as tasks do; a new process reads them, and then takes further
batches: it reads the newest file, and asks for as many events again, all of them new. One process has all partitions,
which is the most that one can get; on a cluster each has those that its tasks have met.
"""

import multiprocessing
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

import numpy as np

from benchmarks.harness import Benchmark, Run, main, option
from benchmarks.results import Measurement, Values
from gamelake.layers.known_events import Events
from gamelake.objects.store import Location, Store
from gamelake.streaming.dedup.worker_memory import WorkerMemory
from gamelake.streaming.plan import KnownFile

_NO_LIMIT = 10**12
_SEED = "seed"
_FURTHER_BATCHES = 5
_SAMPLES_A_SECOND = 100


@dataclass(frozen=True, slots=True)
class WindowLoad:
    """Events a second, seconds of the window and of a batch, and Kafka partitions."""

    rate: int
    window: int
    batch: int
    partitions: int

    @property
    def batches(self) -> int:
        """Batches of a window."""
        return self.window // self.batch

    @property
    def events(self) -> int:
        """Events of one batch and partition."""
        return self.rate * self.batch // self.partitions


def identity_file(store: Store, load: WindowLoad, number: int) -> list[KnownFile]:
    """Write the identities of a batch, one section for each partition, as a task does."""
    random, path = np.random.default_rng(number), f"events/{number:012d}"
    content, sections = bytearray(), []
    for _ in range(load.partitions):
        high, rest = (random.integers(0, 2**bits, load.events, np.uint64, endpoint=False) for bits in (63, 32))
        moment = (number + 1) * load.batch
        sections.append(KnownFile(path, len(content), load.events, moment))
        content += Events.of(high, rest, np.full(load.events, moment)).encode()
    store.put(path, bytes(content))
    return sections


def worker(folder: str, load: WindowLoad, in_memory: int, files: list[list[KnownFile]]) -> Values:
    """Read the window, take further batches, and return what it took."""
    store, memory = Store(Location(uri=folder)), WorkerMemory(in_memory)
    with PeakMemory() as peak:
        started = time.perf_counter()
        for partition in range(load.partitions):
            window = [each[partition] for each in reversed(files[: load.batches])]
            memory.partition(_SEED, load.window, partition, window, store)
        start = time.perf_counter() - started
        known = (files[: load.batches + each + 1] for each in range(_FURTHER_BATCHES))
        taken = [batch_seconds(memory, store, load, each) for each in known]
        held = memory.in_memory
    return {
        "MiB at most": max(peak),
        "s of a start": start,
        "s of a batch": sorted(taken)[len(taken) // 2],
        "events of the window": load.rate * load.window,
        "in memory": held,
    }


def batch_seconds(memory: WorkerMemory, store: Store, load: WindowLoad, files: list[list[KnownFile]]) -> float:
    """Read the newest file of each partition, and look up as many new events."""
    random, found = np.random.default_rng(len(files) + 2**32), 0
    seconds = 0.0
    for partition in range(load.partitions):
        high, rest = (random.integers(0, 2**bits, load.events, np.uint64, endpoint=False) for bits in (63, 32))
        asked = Events.of(high, rest, np.full(load.events, len(files) * load.batch))
        started = time.perf_counter()
        newest = [each[partition] for each in reversed(files[-load.batches :])]
        found += int(memory.partition(_SEED, load.window, partition, newest, store).have(asked).sum())
        seconds += time.perf_counter() - started
    assert found == 0  # noqa: S101 # random identities of 96 bits
    return seconds


class PeakMemory:
    """The anonymous memory of this process while the block runs, in MiB, less that before it; mapped files are not."""

    def __enter__(self) -> list[float]:
        """Begin to sample."""
        self._found, self._over, before = [0.0], Event(), anonymous_mib()

        def sample() -> None:
            while not self._over.wait(1 / _SAMPLES_A_SECOND):
                self._found[0] = max(self._found[0], anonymous_mib() - before)

        self._thread = Thread(target=sample)
        self._thread.start()
        return self._found

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self._over.set()
        self._thread.join()


def anonymous_mib() -> float:
    """The process's anonymous memory in MiB (Linux)."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


@dataclass(frozen=True, slots=True)
class DedupSettings:
    """Options of the benchmark."""

    rates: tuple[int, ...] = option((33_000, 500_000), "events a second")
    in_memory: tuple[int, ...] = option((0, 20_000_000), "limits on events in memory; 0: all of them")
    window: int = option(600, "seconds of the window")
    batch: int = option(2, "seconds of a batch")
    partitions: int = option(32, "partitions of the topic")


def measure(run: Run[DedupSettings]) -> Iterator[Measurement]:
    """Measure each load in a process of its own; TMPDIR has the scratch files."""
    settings = run.settings
    for rate in settings.rates:
        load = WindowLoad(rate, settings.window, settings.batch, settings.partitions)
        uri = (run.folder / str(rate)).as_uri()
        store = Store(Location(uri=uri))
        files = [identity_file(store, load, number) for number in range(load.batches + _FURTHER_BATCHES)]
        for limit in settings.in_memory:
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
                values = pool.submit(worker, uri, load, limit or _NO_LIMIT, files).result()
            subject = f"{rate:,} events/s, at most {f'{limit:,}' if limit else 'all'} in memory"
            yield Measurement(part="a worker", subject=subject, values=values)


BENCHMARK = Benchmark(
    name="scaling-dedup",
    measures="Measure a worker process that remembers the events of a whole window.",
    settings=DedupSettings(),
    quick=DedupSettings(rates=(1_000,), in_memory=(0, 10_000), window=60),
    measure=measure,
)


if __name__ == "__main__":
    sys.exit(main(BENCHMARK))
