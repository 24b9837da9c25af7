"""Measures refreshes of gold tables: `python -m benchmarks.gold`; with `--day` only those of all games' tables."""

import sys

from benchmarks.gold import day, suite
from benchmarks.harness import main

if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--day"]
    is_day_only = "--day" in sys.argv
    sys.exit(main(day.BENCHMARK, words) or (0 if is_day_only else main(suite.BENCHMARK, words)))
