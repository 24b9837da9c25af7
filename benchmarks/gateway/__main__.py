"""Measures the ingest gateway and its peer: `python -m benchmarks.gateway`."""

import argparse
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.gateway import report, suite
from benchmarks.gateway.bodies import JSON, PROTOBUF
from benchmarks.gateway.results import GatewayResults, save
from benchmarks.gateway.services import leave_a_core
from benchmarks.machine import cpu_model, short_commit
from gamelake.model.errors import GamelakeError
from tools.embedded import ServiceError
from tools.embedded.service import REPOSITORY

_RESULTS = REPOSITORY / "benchmarks" / "results"
_WHOLE = suite.Lengths(runs=3, load=8, steady=15, outage=60)
_QUICK = suite.Lengths(runs=1, load=3, steady=4, outage=20)


def main() -> int:
    """Measure; exits with 1 if a service did not start."""
    arguments = _parser().parse_args()
    started, measured_at = time.monotonic(), datetime.now(UTC)
    leave_a_core()
    # For the services' own processes.
    os.environ["PYTHONPATH"] = str(REPOSITORY)
    try:
        found = suite.run(
            REPOSITORY / "build" / "benchmarks" / f"gateway-{os.getpid()}",
            _QUICK if arguments.quick else _WHOLE,
            lambda line: print(f"{time.monotonic() - started:6.0f} s  {line}", flush=True),
        )
    except (GamelakeError, ServiceError, OSError) as error:
        print(f"benchmarks.gateway: {error}", file=sys.stderr)
        return 1
    results = GatewayResults(
        measured_at=measured_at.isoformat(timespec="seconds"),
        commit=short_commit(REPOSITORY),
        cores=os.cpu_count() or 0,
        cpu_model=cpu_model(),
        bytes_per_event={
            content: sum(len(body.original()) for body in found.bodies[content, suite.BATCH])
            // sum(body.events for body in found.bodies[content, suite.BATCH])
            for content in (JSON, PROTOBUF)
        },
        loads=tuple(found.loads),
        memory=tuple(found.memory),
    )
    print(f"results are in {save(results, arguments.out)}")
    print(report.summary(results))
    if arguments.out == _RESULTS and not arguments.quick:
        report.write_report(results, REPOSITORY / "docs" / "performance.md")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gateway", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="one short run without a report, to check the benchmark itself"
    )
    parser.add_argument("--out", type=Path, default=_RESULTS, help="folder for the results; default: %(default)s")
    return parser


if __name__ == "__main__":
    sys.exit(main())
