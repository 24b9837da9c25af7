"""Measures the running stack: `python -m benchmarks.stack`, after `make up`."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.documents import Report, circumstances, goals_table, subjects_table
from benchmarks.goals import Goal
from benchmarks.harness import Benchmark, Run, main, option
from benchmarks.results import Measurement, Results
from benchmarks.stack import throughput, visibility
from benchmarks.stack.probes import cpu_seconds

CPU = "CPU seconds by service"
_VISIBILITY_RATE = 5_000


@dataclass(frozen=True, slots=True)
class StackSettings:
    """Options of the benchmark."""

    rate: int = option(50_000, "events per second of the load")
    seconds: int = option(300, "how long it lasts")
    visibility_seconds: int = option(60, "how long Trino is asked")


def measure(run: Run[StackSettings]) -> Iterator[Measurement]:
    """Load the stack, then ask Trino at a lower rate.

    Raises:
        BenchmarkError: the stack is not running, or a load failed.
    """
    settings, before = run.settings, cpu_seconds()
    run.emit(f"{settings.rate:,} events/s for {settings.seconds} s")
    yield from throughput.measure(settings.rate, settings.seconds, run.emit)
    between = cpu_seconds()
    run.emit(f"drained; now {_VISIBILITY_RATE:,} events/s, and queries to Trino")
    yield visibility.measure(_VISIBILITY_RATE, settings.visibility_seconds)
    after = cpu_seconds()
    for service in sorted(after):
        taken = {
            "during the load": round(between.get(service, 0) - before.get(service, 0), 1),
            "during the queries": round(after[service] - between.get(service, 0), 1),
        }
        yield Measurement(part=CPU, subject=service, values=taken)


def _sustained(results: Results) -> list[float]:
    """The rate of the load, or what came into tables of it."""
    return [each.values["sustained events/s"] for each in results.of(throughput.SUSTAINED)]


def _ages(results: Results) -> list[float]:
    return [each.values["p95 s"] for each in results.of(visibility.AGE)]


GOALS = (
    Goal(
        "events/s through Kafka into 30 tables on the object store, sustained for 5 minutes",
        (40_000, 50_000),
        _sustained,
    ),
    Goal("age of an event when Trino returns it, p95, at 5,000 events/s", (4, 2.5), _ages, " s", at_most=True),
)

BENCHMARK = Benchmark(
    name="stack",
    measures="Measure the running stack: the rate that it sustains, and the delay until Trino returns an event.",
    settings=StackSettings(),
    measure=measure,
    goals=GOALS,
    is_partial=lambda settings: settings.seconds < StackSettings().seconds,
    report=Report(
        page=(circumstances("all containers and the simulator shared them"), goals_table(GOALS)),
        appendix=(subjects_table(throughput.SUSTAINED, "load"), subjects_table(visibility.AGE, "age of an event")),
    ),
)

if __name__ == "__main__":
    sys.exit(main(BENCHMARK))
