"""Lets a lakehouse live a year and measures whether anything grows with it: `python -m benchmarks.year`.

50 batches a simulated day are decided and committed to 33 tables by the streaming driver's own code, one after the
other, and after each batch the scheduler runs the tasks of contracts/schedule.yaml that are due, each in a process of
its own. Days last seconds; retentions are of simulated days. A year with fewer batches is shorter, and so are its
retentions, in proportion. Exits with 1 if a figure is above its bound or a run of a task failed.
"""

import sys
from collections.abc import Iterator

from benchmarks.documents import Report, circumstances
from benchmarks.harness import Benchmark, Run, main
from benchmarks.results import BenchmarkError, Measurement
from benchmarks.year.figures import GOALS, draw, kept, samples_of
from benchmarks.year.plan import FULL_YEAR, YearPlan
from benchmarks.year.simulation import simulate
from benchmarks.year.tasks import failures
from gamelake.objects.store import Location
from tools.embedded.service import REPOSITORY

_SCHEDULE = REPOSITORY / "contracts" / "schedule.yaml"


def measure(run: Run[YearPlan]) -> Iterator[Measurement]:
    """Let a lakehouse live in a folder.

    Raises:
        BenchmarkError: a run of a task failed.
    """
    samples = simulate(Location(uri=run.folder.as_uri()), run.settings, _SCHEDULE, run.emit)
    if failed := list(failures(samples.tasks)):
        raise BenchmarkError(f"{len(failed)} runs of tasks failed: {'; '.join(failed)}")
    yield from samples_of(samples, run.settings)


BENCHMARK = Benchmark(
    name="year",
    measures="Let a lakehouse live a year, and measure whether anything grows with it.",
    settings=YearPlan(),
    measure=measure,
    goals=GOALS,
    is_partial=lambda plan: plan.batches < FULL_YEAR,
    needs_goals=True,
    report=Report(
        page=(circumstances("tables on the local disk"), kept),
        charts={"year.svg": draw},
    ),
)

if __name__ == "__main__":
    sys.exit(main(BENCHMARK))
