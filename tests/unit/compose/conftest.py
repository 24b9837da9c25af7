"""Scripts run in a folder whose name has a space, as a person's checkout may."""

from pathlib import Path

import pytest


@pytest.fixture
def tmp_path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A folder of the test's own, with a space in its path; entrypoints run in containers, whose paths have none."""
    folder = tmp_path if request.path.stem.endswith("_entrypoint") else tmp_path / "my games"
    folder.mkdir(exist_ok=True)
    return folder
