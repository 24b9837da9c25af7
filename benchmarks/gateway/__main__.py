"""Measures the ingest gateway and its peer: `python -m benchmarks.gateway`."""

import sys

from benchmarks.gateway.suite import BENCHMARK
from benchmarks.harness import main

if __name__ == "__main__":
    sys.exit(main(BENCHMARK))
