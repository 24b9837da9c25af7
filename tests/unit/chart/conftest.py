"""The chart, assembled once."""

import subprocess
from pathlib import Path

import pytest

from tests.unit.chart.rendering import REPOSITORY


@pytest.fixture(scope="session")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chart as `make chart` assembles it, in a folder of the tests."""
    return assembled(tmp_path_factory.mktemp("chart"))


def assembled(folder: Path) -> Path:
    subprocess.run([str(REPOSITORY / "deploy/chart.sh"), str(folder)], check=True, capture_output=True)
    return folder / "gamelake"
