"""Measures what a million events cost the running stack: `python -m benchmarks.scaling.costs`, after `make up`.

Simulated players send events by HTTP at a steady rate. CPU seconds of each service, requests and bytes of the object
store are counted from the first event until all are in the tables, and half a minute longer for what gold and the key
figures do; what the idle stack takes is subtracted. Prices are arguments: the defaults are list prices of AWS
(us-east-1).
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.results import MILLION
from benchmarks.stack.probes import StackTopicEnds, cpu_seconds
from benchmarks.stack.throughput import CommittedOffsets, wait_until_taken
from gamelake.storage.store import Store
from tests.stack.prometheus import Prometheus
from tools.stack import COMPOSE, lakehouse, scheme

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
    "gold, key figures, live operations": ("serving",),
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
class Prices:
    """List prices in dollars; `utilisation` is how much of the machines' time is used."""

    vcpu_hour: float
    utilisation: float
    thousand_writes: float
    thousand_reads: float
    gib_month: float
    months: float

    def lines(self, cost: MillionEvents) -> dict[str, float]:
        """Dollars for a million events, by what they are paid for."""
        cpu = {part: seconds / 3600 / self.utilisation * self.vcpu_hour for part, seconds in cost.cpu.items()}
        requests = cost.writes * self.thousand_writes / 1000 + cost.reads * self.thousand_reads / 1000
        storage = cost.stored_bytes / _GIB * self.gib_month * self.months
        return cpu | {"requests to the object store": requests, f"storage for {self.months:g} months": storage}


def stored_bytes() -> int:
    """The size of all data files of the lakehouse."""
    return sum(each.size for each in Store(lakehouse("catalog")).objects("") if each.path.endswith(".parquet"))


def send(rate: int, events: int) -> None:
    """Send events of 30 games to the gateway from a container of the stack, none of them defective."""
    defects = ("late", "future", "undecodable", "unknown-game", "null-time", "duplicate")
    command = [
        *(
            str(COMPOSE / "stack.sh"),
            "run",
            "--rm",
            "--no-deps",
            "--no-TTY",
            "tools",
            "python",
            "-m",
            "tools.simulator",
        ),
        *("--target", "http", "--url", f"{scheme()}://ingest:8000", "--keys-file", "/run/secrets/ingest-keys"),
        *("--games", "30", "--rate", str(rate), "--events", str(events), *(f"--{each}=0" for each in defects)),
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def measure(rate: int, events: int) -> MillionEvents:
    """Let the stack take so many events, and scale what they took to a million.

    Raises:
        LoadFailedError: the tables did not take all events.
    """
    before_idle = Counters.now()
    time.sleep(_IDLE_SECONDS)
    start, bytes_before = Counters.now(), stored_bytes()
    print(f"idle: {_total(before_idle, start) / (start.at - before_idle.at):.2f} cores", flush=True)
    send(rate, events)
    wait_until_taken(StackTopicEnds(), CommittedOffsets())
    time.sleep(_SETTLE_SECONDS)
    end = Counters.now()
    print(f"{events:,} events in {end.at - start.at:.0f} s", flush=True)
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

    return MillionEvents(
        cpu={part: cpu_of(services) / events * MILLION for part, services in _PARTS.items()},
        writes=taken("writes"),
        reads=taken("reads"),
        body_bytes=taken("body_bytes"),
        stored_bytes=(stored_bytes() - bytes_before) / events * MILLION,
    )


def _total(first: Counters, last: Counters) -> float:
    return sum(last.cpu[each] - seconds for each, seconds in first.cpu.items() if each in last.cpu)


def print_table(cost: MillionEvents, prices: Prices) -> None:
    """Print what a million events took, and their price."""
    lines = prices.lines(cost)
    print(
        f"a million events: {cost.body_bytes / MILLION:.0f} MB of bodies, {cost.stored_bytes / MILLION:.0f} MB stored"
    )
    print("| of a million events | taken | dollars |\n| --- | --- | --- |")
    for part, seconds in cost.cpu.items():
        print(f"| {part} | {seconds:.0f} CPU seconds | {lines[part]:.4f} |")
    requests = f"{cost.writes:,.0f} writes, {cost.reads:,.0f} reads"
    for (name, dollars), what in zip(
        [*lines.items()][-2:], (requests, f"{cost.stored_bytes / _GIB:.2f} GiB"), strict=True
    ):
        print(f"| {name} | {what} | {dollars:.4f} |")
    print(f"| sum | {sum(cost.cpu.values()):.0f} CPU seconds | {sum(lines.values()):.4f} |")


def main() -> int:
    """Measure, and print the price."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--rate", type=int, default=2_000, help="events per second")
    parser.add_argument("--events", type=int, default=300_000)
    parser.add_argument("--vcpu-hour", type=float, default=0.0446, help="dollars (c7i.large)")
    parser.add_argument("--utilisation", type=float, default=0.5, help="of the machines that are paid for")
    parser.add_argument("--thousand-writes", type=float, default=0.005, help="dollars (S3 Standard)")
    parser.add_argument("--thousand-reads", type=float, default=0.0004, help="dollars (S3 Standard)")
    parser.add_argument("--gib-month", type=float, default=0.023, help="dollars (S3 Standard)")
    parser.add_argument("--months", type=float, default=1, help="how long the data are stored")
    arguments = vars(parser.parse_args())
    rate, events = arguments.pop("rate"), arguments.pop("events")
    print(f"{os.cpu_count()} cores, {rate:,} events/s", flush=True)
    print_table(measure(rate, events), Prices(**arguments))
    return 0


if __name__ == "__main__":
    sys.exit(main())
