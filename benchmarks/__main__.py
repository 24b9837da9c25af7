"""Measures ingestion: `python -m benchmarks`."""

import sys

from benchmarks.harness import main
from benchmarks.ingestion import BENCHMARK

if __name__ == "__main__":
    sys.exit(main(BENCHMARK))
