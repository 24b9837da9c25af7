"""Measures the rate that the stack sustains: simulated players at a steady rate, and samples of the tables' lag."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from benchmarks.harness import Emit
from benchmarks.results import BenchmarkError, Measurement, Values
from benchmarks.stack.probes import STREAM, StackTopicEnds, start_simulator
from gamelake.ledger.manifests import BatchManifest, Manifests
from gamelake.objects.store import Store
from tools.stack import lakehouse

LOAD, SUSTAINED = "load", "sustained load"
_SAMPLE_SECONDS = 30
_POLL_SECONDS = 0.5
_START_SECONDS = 120
_DRAIN_SECONDS = 300
_WARM_UP_SECONDS = 20
# The simulator catches up the seconds of its start.
_SPARE_SECONDS = 30
# A rate is sustained if this share of it arrived, and the backlog at the end is at most this many seconds of it.
_SHARE, _SECONDS_BEHIND = 0.99, 15


class LoadFailedError(BenchmarkError):
    """The simulator ended early, or not everything was committed in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSample:
    """A sample of the load: records in Kafka and in tables since its start, `seconds` after it."""

    seconds: float
    sent: int
    taken: int

    @property
    def behind(self) -> int:
        """Records in Kafka that are not in the tables."""
        return self.sent - self.taken

    def rates_since(self, earlier: "LoadSample") -> tuple[float, float]:
        """Return records per second into Kafka and into tables."""
        seconds = self.seconds - earlier.seconds
        return (self.sent - earlier.sent) / seconds, (self.taken - earlier.taken) / seconds


class CommittedOffsets:
    """The stream's committed offsets, read from the manifests of its batches."""

    def __init__(self) -> None:
        self._manifests = Manifests(Store(lakehouse("catalog")), STREAM)
        last = self._manifests.last(1)
        self._next = last[-1].batch_id + 1 if last else 0
        self._offsets = dict(_after(last[-1])) if last else {}
        self.batches = 0
        self.rows = 0

    def now(self) -> dict[int, int]:
        """The next offset of each partition that the stream has read."""
        while (manifest := self._manifests.read(self._next)) is not None:
            self._next += 1
            self.batches += 1
            self.rows += sum(entry.rows for entry in manifest.tables)
            self._offsets |= _after(manifest)
        return self._offsets


def _after(manifest: BatchManifest) -> Mapping[int, int]:
    return {taken.partition: taken.last + 1 for taken in manifest.offsets}


def measure(rate: int, seconds: int, emit: Emit) -> Iterator[Measurement]:
    """Load the stack for `seconds` after a warm-up, then wait until the tables have everything.

    Raises:
        LoadFailedError: the simulator failed, or the tables did not catch up.
    """
    ends, taken = StackTopicEnds(), CommittedOffsets()
    before = ends.now()
    # Longer than the measurement, so that no sample comes after its end.
    events = rate * (seconds + _WARM_UP_SECONDS + _SPARE_SECONDS)
    simulator = start_simulator(rate, events)
    _wait_for(lambda: ends.now() != before, _START_SECONDS, "the simulator sent nothing")
    time.sleep(_WARM_UP_SECONDS)
    started, batches, rows = time.monotonic(), taken.batches, taken.rows
    samples = [_sample(ends, taken, before, started)]
    while samples[-1].seconds < seconds - 1 and simulator.poll() is None:
        time.sleep(max(0.0, len(samples) * _SAMPLE_SECONDS - (time.monotonic() - started)))
        samples.append(_sample(ends, taken, before, started))
        emit(f"{samples[-1]}")
    if simulator.wait(timeout=_DRAIN_SECONDS) != 0:
        raise LoadFailedError("the simulator failed: build/benchmarks/simulator.log says why")
    ended = time.monotonic()
    wait_until_taken(ends, taken)
    yield from samples_of(rate, under_load(samples, events))
    drained = {"drained s": round(time.monotonic() - ended, 1), "batches": taken.batches - batches}
    yield Measurement(part="after the load", subject=f"{rate:,} events/s", values=drained | {"rows": taken.rows - rows})


def samples_of(rate: int, samples: Sequence[LoadSample]) -> Iterator[Measurement]:
    """Yield each interval of a load, and what it sustained: its rate, or what came into tables if that is less."""
    subject = f"{rate:,} events/s"
    for number, (before, after) in enumerate(pairwise(samples), start=1):
        sent, taken = after.rates_since(before)
        values: Values = {
            "records/s into Kafka": round(sent),
            "records/s into tables": round(taken),
            "behind": after.behind,
        }
        yield Measurement(part=LOAD, subject=subject, round=number, values=values)
    sent, taken = samples[-1].rates_since(samples[0])
    is_sustained = min(sent, taken) >= _SHARE * rate and samples[-1].behind <= _SECONDS_BEHIND * rate
    whole: Values = {
        "sustained events/s": rate if is_sustained else round(taken),
        "records/s into Kafka": round(sent),
        "records/s into tables": round(taken),
        "behind at most": max(each.behind for each in samples),
        "for s": round(samples[-1].seconds),
    }
    yield Measurement(part=SUSTAINED, subject=subject, values=whole)


def wait_until_taken(ends: StackTopicEnds, taken: CommittedOffsets) -> None:
    """Wait until the tables have all that is in Kafka now.

    Raises:
        LoadFailedError: the tables did not catch up.
    """
    everything = ends.now()
    _wait_for(lambda: _covers(taken.now(), everything), _DRAIN_SECONDS, "the tables did not take everything")


def under_load(samples: Sequence[LoadSample], events: int) -> tuple[LoadSample, ...]:
    """The samples while players were still sending; later ones are not under load."""
    return tuple(each for each in samples if each.sent < events)


def _sample(ends: StackTopicEnds, taken: CommittedOffsets, before: Mapping[int, int], started: float) -> LoadSample:
    # Tables first: a record that arrives in between counts as lag.
    have, there = taken.now(), ends.now()
    return LoadSample(
        seconds=round(time.monotonic() - started, 2),
        sent=sum(end - before[partition] for partition, end in there.items()),
        taken=sum(max(0, have.get(partition, 0) - start) for partition, start in before.items()),
    )


def _covers(have: Mapping[int, int], wanted: Mapping[int, int]) -> bool:
    return all(have.get(partition, 0) >= end for partition, end in wanted.items())


def _wait_for(condition: Callable[[], bool], patience: float, failure: str) -> None:
    latest = time.monotonic() + patience
    while not condition():
        if time.monotonic() > latest:
            raise LoadFailedError(f"{failure} within {patience:.0f} s")
        time.sleep(_POLL_SECONDS)
