"""Measures a worker process that remembers the events of a whole window: `python -m benchmarks.scaling.dedup`.

The identity files of a window are written to a folder, as tasks do; a new process reads them, and then takes further
batches: it reads the newest file, and asks for as many events again, all of them new. One process has all partitions,
which is the most that one can get; on a cluster each has those that its tasks have met.
"""

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

import numpy as np

from gamelake.layers.known_events import Events
from gamelake.storage.store import Location, Store
from gamelake.streaming.duplicates import WorkerMemory
from gamelake.streaming.plan import KnownFile

_NO_LIMIT = 10**12
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


def worker(folder: str, load: WindowLoad, in_memory: int, files: list[list[KnownFile]]) -> None:
    """Read the window, take further batches, and print what it took."""
    store, memory = Store(Location(uri=folder)), WorkerMemory(load.window, in_memory)
    with PeakMemory() as peak:
        started = time.perf_counter()
        for partition in range(load.partitions):
            memory.events(partition, [each[partition] for each in reversed(files[: load.batches])], store)
        start = time.perf_counter() - started
        known = (files[: load.batches + each + 1] for each in range(_FURTHER_BATCHES))
        taken = [batch_seconds(memory, store, load, each) for each in known]
        held = memory.in_memory
    print(
        f"| {load.rate:,} | {load.rate * load.window:,} | {'all' if in_memory == _NO_LIMIT else f'{in_memory:,}'} | "
        f"{held:,} | {max(peak):,.0f} MiB | {start:.1f} s | {sorted(taken)[len(taken) // 2]:.2f} s |",
        flush=True,
    )


def batch_seconds(memory: WorkerMemory, store: Store, load: WindowLoad, files: list[list[KnownFile]]) -> float:
    """Read the newest file of each partition, and look up as many new events."""
    random, found = np.random.default_rng(len(files) + 2**32), 0
    seconds = 0.0
    for partition in range(load.partitions):
        high, rest = (random.integers(0, 2**bits, load.events, np.uint64, endpoint=False) for bits in (63, 32))
        asked = Events.of(high, rest, np.full(load.events, len(files) * load.batch))
        started = time.perf_counter()
        newest = [each[partition] for each in reversed(files[-load.batches :])]
        found += int(memory.events(partition, newest, store).have(asked).sum())
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


def run_alone(measure: Callable[..., None], *arguments: object) -> None:
    """Call a function in a process of its own, whose memory is that of this measurement alone.

    Raises:
        SystemExit: the process has failed.
    """
    process = multiprocessing.get_context("spawn").Process(target=measure, args=arguments)
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(process.exitcode)


def loads(arguments: argparse.Namespace) -> Iterator[tuple[WindowLoad, int]]:
    """The loads, each with the limits on events in memory."""
    for rate in arguments.rates:
        for limit in arguments.in_memory:
            yield WindowLoad(rate, arguments.window, arguments.batch, arguments.partitions), limit or _NO_LIMIT


def main() -> None:
    """Measure each load in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rates", type=int, nargs="+", default=[33_000, 500_000], help="events a second")
    parser.add_argument("--in-memory", type=int, nargs="+", default=[0, 20_000_000], help="events; 0: all of them")
    parser.add_argument("--window", type=int, default=600, help="seconds")
    parser.add_argument("--batch", type=int, default=2, help="seconds")
    parser.add_argument("--partitions", type=int, default=32)
    parser.add_argument("--folder", type=Path, help="for the identity files; TMPDIR has the scratch files")
    arguments = parser.parse_args()
    print("| events/s | events of the window | limit | in memory | memory at most | start | batch |")
    print("| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    written: dict[WindowLoad, tuple[str, list[list[KnownFile]]]] = {}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        for load, limit in loads(arguments):
            if load not in written:
                uri = Path(folder, str(load.rate)).as_uri()
                store, batches = Store(Location(uri=uri)), range(load.batches + _FURTHER_BATCHES)
                written[load] = (uri, [identity_file(store, load, number) for number in batches])
            uri, files = written[load]
            run_alone(worker, uri, load, limit, files)


if __name__ == "__main__":
    main()
