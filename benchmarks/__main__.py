"""Runs the benchmarks, saves the results, and writes them into the documents: `python -m benchmarks`."""

import argparse
import os
import sys
import time
from pathlib import Path

from benchmarks.report import write_report
from benchmarks.results import save, save_part
from benchmarks.suite import NAMES, SuiteRequest, run
from gamelake.model.errors import GamelakeError
from tools.embedded.java import spark_environment
from tools.embedded.service import REPOSITORY

_RESULTS = REPOSITORY / "benchmarks" / "results"


def main() -> int:
    """Run the selected benchmarks."""
    arguments = _parser().parse_args()
    os.environ |= spark_environment()
    names = tuple(arguments.only or NAMES)
    request = SuiteRequest(
        events=arguments.events, repeats=arguments.repeats, names=names, directory=REPOSITORY / "build" / "benchmarks"
    )
    started = time.monotonic()
    try:
        results = run(request, lambda line: print(f"{time.monotonic() - started:6.0f} s  {line}", flush=True))
    except GamelakeError as error:
        print(f"gamelake: {error}", file=sys.stderr)
        return 1
    whole = set(names) == set(NAMES)
    print(f"results are in {(save if whole else save_part)(results, arguments.out)}")
    if whole and arguments.out == _RESULTS:
        write_report(results, REPOSITORY / "docs")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    add = parser.add_argument
    add("--events", type=int, default=2_000_000, help="events in the topic; default: %(default)s")
    add("--repeats", type=int, default=3, help="rounds; each one runs everything once; default: %(default)s")
    add(
        "--only",
        nargs="+",
        choices=NAMES,
        metavar="NAME",
        help=f"measure only these, and write no report: {', '.join(NAMES)}",
    )
    add("--out", type=Path, default=_RESULTS, help="folder for the results; default: benchmarks/results")
    return parser


if __name__ == "__main__":
    sys.exit(main())
