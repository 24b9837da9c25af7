"""Images that were built are not built again: an engine keeps every layer, also those of the stages that compile."""

import os
import subprocess

from tests.support.pages import REPOSITORY


def test_building_the_images_again_runs_no_step() -> None:
    environment = {**os.environ, "FRESH": ""}
    done = subprocess.run(
        [REPOSITORY / "compose/images.sh"], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    logs = "".join(path.read_text() for path in (REPOSITORY / "build/images").glob("*.log"))

    assert done.returncode == 0, done.stderr
    assert "Using cache" in logs
    assert [line for line in logs.splitlines() if "Running in" in line] == []
