"""Measures the running stack: `python -m benchmarks.stack`, after `make up`."""

import argparse
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.machine import cpu_model, short_commit
from benchmarks.stack import report, throughput, visibility
from benchmarks.stack.probes import StackMissingError, cpu_seconds
from benchmarks.stack.results import StackResults, save
from tools.embedded.service import REPOSITORY

_RESULTS = REPOSITORY / "benchmarks" / "results"


def main() -> int:
    """Run the benchmarks; 1 if the stack is not running or the load failed."""
    arguments = _parser().parse_args()
    started = time.monotonic()
    try:
        cpu_seconds()
        results = _measured(arguments, lambda line: print(f"{time.monotonic() - started:6.0f} s  {line}", flush=True))
    except (StackMissingError, OSError, throughput.LoadFailedError) as error:
        print(f"benchmarks.stack: {error}", file=sys.stderr)
        return 1
    print(f"results are in {save(results, arguments.out)}")
    if arguments.out == _RESULTS:
        report.write_report(results, REPOSITORY / "docs/performance.md")
    return 0


def _measured(arguments: argparse.Namespace, emit: throughput.Emit) -> StackResults:
    emit(f"{arguments.rate:,} events/s for {arguments.seconds} s")
    load = throughput.measure(arguments.rate, arguments.seconds, emit)
    emit(f"drained in {load.drained_seconds} s; now {report.VISIBILITY_RATE:,} events/s, and queries to Trino")
    seen = visibility.measure(report.VISIBILITY_RATE, arguments.visibility_seconds)
    emit(f"visible in Trino: p50 {seen.p50} s, p95 {seen.p95} s, oldest {seen.max} s")
    return StackResults(
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=short_commit(REPOSITORY),
        cores=os.cpu_count() or 0,
        cpu_model=cpu_model(),
        seconds=arguments.seconds,
        throughput=(load,),
        visibility=(seen,),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stack", description=__doc__)
    add = parser.add_argument
    add(
        "--rate",
        type=int,
        default=max(report.WANTED_RATES),
        help="events per second of the load; default: %(default)s",
    )
    add("--seconds", type=int, default=report.WANTED_SECONDS, help="how long it lasts; default: %(default)s")
    add("--visibility-seconds", type=int, default=60, help="how long Trino is asked; default: %(default)s")
    add("--out", type=Path, default=_RESULTS, help="folder for the results; default: benchmarks/results")
    return parser


if __name__ == "__main__":
    sys.exit(main())
