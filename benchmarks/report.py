"""Writes the latest results of each benchmark into the documents again: `python -m benchmarks.report`."""

import sys

from benchmarks import ingestion
from benchmarks.gateway import suite as gateway
from benchmarks.gold import day
from benchmarks.gold import suite as gold
from benchmarks.questions import __main__ as questions
from benchmarks.results import latest
from benchmarks.stack import __main__ as stack
from benchmarks.year import __main__ as year
from tools.embedded.service import REPOSITORY

DOCUMENTED = {
    each.name: each.report
    for each in (
        ingestion.BENCHMARK,
        gateway.BENCHMARK,
        gold.BENCHMARK,
        day.BENCHMARK,
        questions.BENCHMARK,
        stack.BENCHMARK,
        year.BENCHMARK,
    )
    if each.report is not None
}


def main() -> int:
    """Write all reports."""
    for name, report in DOCUMENTED.items():
        report.write(latest(name), REPOSITORY / "docs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
