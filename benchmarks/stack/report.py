"""Writes the results of a run on the stack into docs/performance.md."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from benchmarks.report import put_between_markers, table
from benchmarks.stack.results import StackResults, Throughput, Visibility
from benchmarks.targets import STEPS, TargetVerdict

# Bounds in two steps: events per second, and seconds.
WANTED_RATES = (40_000, 50_000)
WANTED_SECONDS = 300
_WANTED_AGES = (4.0, 2.5)
VISIBILITY_RATE = 5_000
# The share of the rate that must arrive, and how many seconds' worth of it may be behind.
_SHARE = 0.99
_SECONDS_BEHIND = 15
_SAMPLES_PER_ROW = 3


def write_report(results: StackResults, document: Path) -> None:
    """Write the tables between the document's markers.

    Raises:
        MarkersMissingError: the document has no markers.
    """
    put_between_markers(document, "measured on the stack", _parts(results))


def sustained(load: Throughput) -> bool:
    """Whether the tables sustained the wanted rate."""
    wanted = _SHARE * load.rate
    return (
        load.sent_rate >= wanted
        and load.taken_rate >= wanted
        and load.samples[-1].behind <= _SECONDS_BEHIND * load.rate
    )


def _parts(results: StackResults) -> list[str]:
    parts = [
        f"Measured on {results.measured_at[:10]} at commit `{results.commit}`; all containers and the simulator shared "
        f"{results.cores} cores ({results.cpu_model}).",
        table(["figure", "to reach", "measured", "verdict"], _goals(results)),
    ]
    parts += [_load(load) for load in results.throughput]
    parts += [_cores("Seconds of CPU by service", results)]
    return parts


def _goals(results: StackResults) -> list[list[str]]:
    rates, ages = list(zip(STEPS, WANTED_RATES, strict=True)), list(zip(STEPS, _WANTED_AGES, strict=True))
    loads = [_throughput_row(load, step, rate) for load in results.throughput for step, rate in rates]
    return loads + [_visibility_row(each, step, age) for each in results.visibility for step, age in ages]


def _throughput_row(load: Throughput, step: str, wanted: int) -> list[str]:
    reached = sustained(load) and load.rate >= wanted and load.samples[-1].seconds >= 0.95 * WANTED_SECONDS
    return [
        f"events/s through Kafka into 30 tables on the object store, sustained for 5 minutes: {step}",
        f"{wanted:,}",
        f"asked {load.rate:,}/s for {load.samples[-1].seconds:.0f} s: {load.sent_rate:,.0f}/s into Kafka, "
        f"{load.taken_rate:,.0f}/s into tables, {load.most_behind:,} behind at most, "
        f"drained in {load.drained_seconds} s",
        _verdict(reached),
    ]


def _visibility_row(each: Visibility, step: str, wanted: float) -> list[str]:
    return [
        f"event to Trino-visible at {each.rate:,} events/s, p95: {step}",
        f"at most {wanted:g} s",
        f"{each.p95} s (p50 {each.p50} s, oldest {each.max} s, "
        f"{each.questions} queries of {each.question_seconds_p50} s)",
        _verdict(each.p95 <= wanted and each.rate >= VISIBILITY_RATE),
    ]


def _verdict(reached: bool) -> str:
    return TargetVerdict.REACHED if reached else TargetVerdict.FALLS_SHORT


def _load(load: Throughput) -> str:
    samples = load.samples[::_SAMPLES_PER_ROW]
    rows = [
        [
            f"{after.seconds:.0f}",
            f"{(after.sent - before.sent) / (after.seconds - before.seconds):,.0f}",
            f"{(after.taken - before.taken) / (after.seconds - before.seconds):,.0f}",
            f"{after.behind:,}",
        ]
        for before, after in pairwise(samples)
    ]
    return table(["second", "records/s into Kafka", "records/s into tables", "behind"], rows)


def _cores(title: str, results: StackResults) -> str:
    runs: Sequence[tuple[str, Mapping[str, float]]] = [
        *((f"{load.rate:,} events/s", load.cpu_seconds) for load in results.throughput),
        *((f"{each.rate:,} events/s, and questions", each.cpu_seconds) for each in results.visibility),
    ]
    services = sorted({name for _, used in runs for name in used})
    rows = [[service, *(f"{used.get(service, 0):,.0f}" for _, used in runs)] for service in services]
    return f"{title}:\n\n" + table(["service", *(name for name, _ in runs)], rows)
