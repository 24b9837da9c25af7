"""Images that were built are not built again: an engine keeps every layer, also those of the stages that compile."""

import os
import subprocess

from tests.support.pages import REPOSITORY

IMAGES = REPOSITORY / "build/images"


def build_again() -> str:
    environment = {**os.environ, "FRESH": ""}
    done = subprocess.run(
        [REPOSITORY / "compose/images.sh"], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_building_the_images_again_runs_no_step_and_is_left_out_while_nothing_changes() -> None:
    # Without this file the script asks the engine for every image.
    (IMAGES / "inputs").unlink()
    build_again()
    logs = "".join(path.read_text() for path in IMAGES.glob("*.log"))

    assert "Using cache" in logs
    assert [line for line in logs.splitlines() if "Running in" in line] == []
    assert build_again() == "images: unchanged\n"
