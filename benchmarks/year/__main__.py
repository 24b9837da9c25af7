"""Lets a lakehouse live a year and measures whether anything grows with it: `python -m benchmarks.year`.

50 batches a simulated day are decided and committed to 33 tables by the streaming driver's own code, one after the
other, and after each batch the scheduler runs the tasks of contracts/schedule.yaml that are due, each in a process of
its own. Days last seconds; retentions are of simulated days. A year with fewer batches is shorter, and so are its
retentions, in proportion. Prints the figures by tenths as JSON; exits with 1 if a figure is above its bound or a run of
a task failed.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from benchmarks.machine import cpu_model, short_commit
from benchmarks.results import write_json
from benchmarks.year.figures import YearFigures, of_tenths, rises_of
from benchmarks.year.plan import YearPlan
from benchmarks.year.report import BOUNDS, write_report
from benchmarks.year.simulation import simulate
from benchmarks.year.tasks import failures
from gamelake.storage.store import Location
from tools.embedded.service import REPOSITORY

_SCHEDULE = REPOSITORY / "contracts" / "schedule.yaml"


def main() -> int:
    """Measure, and print the figures as JSON."""
    arguments = _parser().parse_args()
    started = time.monotonic()

    def emit(line: str) -> None:
        print(f"{time.monotonic() - started:6.0f} s  {line}", file=sys.stderr, flush=True)

    plan = YearPlan(batches=arguments.batches, tables=arguments.tables, batches_per_day=arguments.batches_per_day)
    with tempfile.TemporaryDirectory(prefix="gamelake-year-") as folder:
        figures = measure(Path(folder), plan, emit)
    if arguments.out is not None:
        write_json(figures, arguments.out, f"year-{figures.measured_at[:10]}-{figures.commit}", "year-latest")
        write_report(figures, REPOSITORY / "docs")
    print(msgspec.json.format(msgspec.json.encode(figures)).decode())
    return int(bool(figures.failed) or not all(each.is_kept(figures.rises) for each in BOUNDS))


def measure(folder: Path, plan: YearPlan, emit: Callable[[str], None]) -> YearFigures:
    """Let a lakehouse live in a folder.

    Args:
        folder: an empty one.
        plan: for how long.
        emit: called with a line after each tenth.
    """
    measured_at, started = datetime.now(UTC), time.monotonic()
    samples = simulate(Location(uri=folder.as_uri()), plan, _SCHEDULE, emit)
    tenths = of_tenths(samples, plan)
    return YearFigures(
        measured_at=measured_at.isoformat(timespec="seconds"),
        commit=short_commit(REPOSITORY),
        cores=os.cpu_count() or 0,
        cpu_model=cpu_model(),
        seconds=round(time.monotonic() - started, 1),
        batches=plan.batches,
        tables=plan.tables,
        days=plan.days,
        retention_days=round(plan.retention.total_seconds() / 86_400, 2),
        tenths=tenths,
        rises=rises_of(BOUNDS, tenths),
        failed=tuple(failures(samples.tasks)),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.year", description=__doc__)
    usual = YearPlan()
    parser.add_argument("--batches", type=int, default=usual.batches, help="default: %(default)s")
    parser.add_argument("--tables", type=int, default=usual.tables, help="at least 3; default: %(default)s")
    parser.add_argument("--batches-per-day", type=int, default=usual.batches_per_day, help="default: %(default)s")
    parser.add_argument("--out", type=Path, help="store the results there, and write the tables of docs/performance.md")
    return parser


if __name__ == "__main__":
    sys.exit(main())
