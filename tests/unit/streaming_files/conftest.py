"""Batches of files that run in the test's process."""

from pathlib import Path

import pytest

from tests.unit.streaming_files.task_runs import FileRuns


@pytest.fixture
def runs(tmp_path: Path) -> FileRuns:
    return FileRuns(tmp_path)
