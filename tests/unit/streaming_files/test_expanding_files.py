"""A file takes a bounded amount of memory, however far it expands: counted before it is expanded, in every format."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.streaming_files.bombs import BOMBS

ROOT = Path(__file__).parents[3]
# docs/architecture.md, "Budgets in bytes": what reading takes in addition to files as stored.
READING_MIB = 384


@pytest.mark.parametrize("name", BOMBS)
def test_reading_a_file_stays_within_its_budget(name: str) -> None:
    key, content = BOMBS[name]

    run = subprocess.run(
        [sys.executable, "-m", "tests.unit.streaming_files.bombs", key],
        input=content(),
        capture_output=True,
        check=True,
        cwd=ROOT,
    )

    assert float(run.stdout) < READING_MIB
