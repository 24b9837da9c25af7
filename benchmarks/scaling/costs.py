"""Measures what a million events cost the running stack: `python -m benchmarks.scaling.costs`, after `make up`.

Simulated players send events by HTTP at a steady rate. CPU seconds of each service, requests and bytes of the object
store are counted from the first event until all are in the tables, and half a minute longer for what gold and the KPIs
do; what the idle stack takes is subtracted. Prices are arguments: the defaults are list prices of AWS
(us-east-1).
"""

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from benchmarks.harness import Benchmark, Run, main, option
from benchmarks.results import MILLION, Measurement, Values
from benchmarks.stack.probes import StackTopicEnds, cpu_seconds, simulator
from benchmarks.stack.throughput import CommittedOffsets, wait_until_taken
from gamelake.objects.store import Store
from tests.stack.prometheus import Prometheus
from tools.stack import lakehouse, scheme

_GIB = 2**30
_IDLE_SECONDS, _SETTLE_SECONDS = 60, 30
# As S3 charges for them: a listing like a write, and a deletion nothing.
_WRITES, _READS = "put|post|copy|complete|new|list", "get|head|select"
_REQUESTS = "sum(minio_s3_requests_total{{api=~'({kinds}).*'}})"
# What a part of the platform is made of; all others watch it, or serve queries.
_PARTS = {
    "gateway": ("ingest", "postgres"),
    "Kafka": ("kafka", "registry"),
    "ingestion": ("ingest-events", "spark-worker", "spark-master"),
    "object store": ("object-store",),
    "gold, KPIs, live operations": ("serving",),
}


@dataclass(frozen=True, slots=True)
class Counters:
    """What the stack has taken so far."""

    at: float
    cpu: Mapping[str, float]
    writes: float
    reads: float
    body_bytes: float

    @classmethod
    def now(cls) -> "Counters":
        """Count now; Prometheus' figures are some seconds old."""
        ask = Prometheus().values
        return cls(
            at=time.monotonic(),
            cpu=cpu_seconds(),
            writes=sum(ask(_REQUESTS.format(kinds=_WRITES))),
            reads=sum(ask(_REQUESTS.format(kinds=_READS))),
            body_bytes=sum(ask("sum(gamelake_ingest_body_bytes_total)")),
        )


@dataclass(frozen=True, slots=True)
class MillionEvents:
    """What a million events took: CPU seconds by part, requests, bytes that were sent and bytes that are stored."""

    cpu: Mapping[str, float]
    writes: float
    reads: float
    body_bytes: float
    stored_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSettings:
    """Options of the benchmark; list prices in dollars."""

    rate: int = option(2_000, "events per second")
    events: int = option(300_000, "events to send")
    vcpu_hour: float = option(0.0446, "dollars (c7i.large)")
    utilisation: float = option(0.5, "share of the machines' time that is used")
    thousand_writes: float = option(0.005, "dollars (S3 Standard)")
    thousand_reads: float = option(0.0004, "dollars (S3 Standard)")
    gib_month: float = option(0.023, "dollars (S3 Standard)")
    months: float = option(1.0, "how long the data are stored")

    def samples(self, cost: MillionEvents) -> Iterator[Measurement]:
        """Yield the usage and the price in dollars of a million events, by resource."""
        hour = self.vcpu_hour / self.utilisation / 3600
        rows: dict[str, Values] = {
            part: {"dollars": seconds * hour, "CPU s": seconds} for part, seconds in cost.cpu.items()
        }
        requests = cost.writes * self.thousand_writes / 1000 + cost.reads * self.thousand_reads / 1000
        rows["requests to the object store"] = {"dollars": requests, "writes": cost.writes, "reads": cost.reads}
        gib = cost.stored_bytes / _GIB
        rows[f"storage for {self.months:g} months"] = {"dollars": gib * self.gib_month * self.months, "GiB": gib}
        dollars = sum(values["dollars"] for values in rows.values())
        rows["sum"] = {"dollars": dollars, "CPU s": sum(cost.cpu.values()), "MB of bodies": cost.body_bytes / MILLION}
        for subject, values in rows.items():
            yield Measurement(part="a million events", subject=subject, values=values)


def stored_bytes() -> int:
    """The size of all data files of the lakehouse."""
    return sum(each.size for each in Store(lakehouse("catalog")).objects("") if each.path.endswith(".parquet"))


def send(rate: int, events: int) -> None:
    """Send events to the gateway from a container of the stack."""
    target = ("--target=http", f"--url={scheme()}://ingest:8000", "--keys-file=/run/secrets/ingest-keys/keys.yaml")
    command = simulator(rate, events, *target)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def measure(run: Run[CostSettings]) -> Iterator[Measurement]:
    """Let the stack take a number of events, and scale their usage to a million.

    Raises:
        LoadFailedError: the tables did not take all events.
    """
    events = run.settings.events
    before_idle = Counters.now()
    time.sleep(_IDLE_SECONDS)
    start, bytes_before = Counters.now(), stored_bytes()
    run.emit(f"idle: {_total(before_idle, start) / (start.at - before_idle.at):.2f} cores")
    send(run.settings.rate, events)
    wait_until_taken(StackTopicEnds(), CommittedOffsets())
    time.sleep(_SETTLE_SECONDS)
    end = Counters.now()
    run.emit(f"{events:,} events in {end.at - start.at:.0f} s")
    idle = (end.at - start.at) / (start.at - before_idle.at)

    def taken(counter: str) -> float:
        first, then, last = (float(getattr(each, counter)) for each in (before_idle, start, end))
        return max(0.0, (last - then) - (then - first) * idle) / events * MILLION

    def cpu_of(services: tuple[str, ...]) -> float:
        return sum(
            max(0.0, end.cpu[each] - start.cpu[each] - (start.cpu[each] - before_idle.cpu[each]) * idle)
            for each in services
            if each in start.cpu
        )

    cost = MillionEvents(
        cpu={part: cpu_of(services) / events * MILLION for part, services in _PARTS.items()},
        writes=taken("writes"),
        reads=taken("reads"),
        body_bytes=taken("body_bytes"),
        stored_bytes=(stored_bytes() - bytes_before) / events * MILLION,
    )
    yield from run.settings.samples(cost)


def _total(first: Counters, last: Counters) -> float:
    return sum(last.cpu[each] - seconds for each, seconds in first.cpu.items() if each in last.cpu)


BENCHMARK = Benchmark(
    name="scaling-costs",
    measures="Measure what a million events cost the running stack; prices are options.",
    settings=CostSettings(),
    quick=CostSettings(events=10_000),
    measure=measure,
)


if __name__ == "__main__":
    sys.exit(main(BENCHMARK))
