"""A lakehouse for tasks that run in the test's process."""

from pathlib import Path

import pytest

from tests.unit.streaming.tasks import TaskLakehouse


@pytest.fixture
def lakehouse(tmp_path: Path) -> TaskLakehouse:
    return TaskLakehouse(tmp_path)
