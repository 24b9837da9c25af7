"""Images are built side by side, each after those that it begins with; a failure or Ctrl-C ends the script in order."""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.eventually import eventually
from tests.support.programs import add_program, lines_of
from tests.unit.compose.configured import COMPOSE

# Notes when each build begins and ends. $FAILING fails; $HANGING ends once $UNTIL has begun. Each image has the id $ID.
FAKE_DOCKER = """#!/bin/bash
if [ "$1 $2" = "image inspect" ]; then echo "${ID:-sha256:1}"; fi
[ "$1" = build ] || exit 0
name="${3#compose/}" name="${name%/Dockerfile}"
echo $$ >"$LOG.$name"
echo "begins $name" >>"$LOG"
if [ "$name" = "$FAILING" ]; then
  echo "no space left on device"
  exit 1
fi
while [ "$name" = "$HANGING" ] && ! grep -q "begins $UNTIL$" "$LOG"; do
  sleep 0.05
done
echo "ends $name" >>"$LOG"
"""
BASES = {"java": "base", "postgres": "base", "toolchain": "java", "spark": "toolchain", "object-store": "toolchain"}


@dataclass(frozen=True, slots=True)
class Builds:
    """The script in a checkout of its own, with an engine that only notes what it builds."""

    folder: Path

    @property
    def steps(self) -> list[str]:
        return lines_of(self.folder / "log")

    def start(self, *names: str, **variables: str) -> "subprocess.Popen[str]":
        """Start the script, in a session of its own as at a terminal."""
        environment = {"PATH": f"{self.folder}:{os.environ['PATH']}", "LOG": str(self.folder / "log"), **variables}
        return subprocess.Popen(
            [self.folder / "compose/images.sh", *names],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, **variables: str) -> str:
        """Build all images; return what the script prints."""
        script = self.start(**variables)
        output, _ = script.communicate(timeout=60)
        assert script.returncode == 0, output
        return output


@pytest.fixture
def builds(tmp_path: Path) -> Builds:
    (tmp_path / "compose").mkdir()
    for name in ("images.sh", "read_env.sh", ".env"):
        shutil.copy(COMPOSE / name, tmp_path / "compose")
    shutil.copy(COMPOSE.parent / ".dockerignore", tmp_path)
    (tmp_path / "services/__pycache__").mkdir(parents=True)
    for name in ("services/gateway.py", "services/__pycache__/gateway.pyc", "not in an image"):
        (tmp_path / name).touch()
    (tmp_path / "requirements.lock").touch()
    add_program(tmp_path / "docker", FAKE_DOCKER)
    return Builds(tmp_path)


def test_an_image_is_built_after_the_one_that_it_begins_with(builds: Builds) -> None:
    builds.run()

    assert len(builds.steps) == 2 * 11
    assert [
        name
        for name, base in BASES.items()
        if builds.steps.index(f"begins {name}") < builds.steps.index(f"ends {base}")
    ] == []


def test_nothing_is_built_again_while_nothing_has_changed(builds: Builds) -> None:
    builds.run()

    for name in ("services/__pycache__/gateway.pyc", "not in an image"):
        (builds.folder / name).write_text("changed")

    assert builds.run() == "images: unchanged\n"
    assert len(builds.steps) == 2 * 11


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "services/gateway.py").write_text("changed"),
        lambda folder: (folder / "services/gateway.py").chmod(0o755),
        lambda folder: (folder / "services/new.py").touch(),
        lambda folder: (folder / "services/gateway.py").unlink(),
    ],
    ids=["a file's content", "a file's mode", "a new file", "a removed file"],
)
def test_all_images_are_built_again_after_a_change(builds: Builds, change: Callable[[Path], object]) -> None:
    builds.run()

    change(builds.folder)
    builds.run()

    assert len(builds.steps) == 2 * 2 * 11


@pytest.mark.parametrize("variables", [{"ID": "sha256:2"}, {"FRESH": "1"}], ids=["another image", "a fresh build"])
def test_all_images_are_built_again_if_the_engine_has_others_or_on_request(
    builds: Builds, variables: dict[str, str]
) -> None:
    builds.run()

    builds.run(**variables)

    assert len(builds.steps) == 2 * 2 * 11


def test_after_a_failure_the_next_run_builds(builds: Builds) -> None:
    builds.run()
    (builds.folder / "services/new.py").touch()
    builds.start(FAILING="spark").communicate(timeout=60)
    (builds.folder / "services/new.py").unlink()

    assert "images: spark: " in builds.run()


def test_images_that_do_not_depend_on_each_other_are_built_at_the_same_time(builds: Builds) -> None:
    script = builds.start("object-store", "registry", HANGING="object-store", UNTIL="registry")
    script.communicate(timeout=60)

    assert script.returncode == 0
    assert builds.steps.index("begins registry") < builds.steps.index("ends object-store")


def test_a_build_that_fails_is_reported_with_the_end_of_its_log_and_the_others_are_finished(builds: Builds) -> None:
    script = builds.start(FAILING="registry", HANGING="object-store", UNTIL="registry")
    output, _ = script.communicate(timeout=60)

    assert script.returncode == 1
    assert "building registry failed; the last lines of build/images/registry.log: no space left on device" in output
    assert "ends object-store" in builds.steps


def test_an_image_that_does_not_exist_is_an_error_and_nothing_is_built(builds: Builds) -> None:
    script = builds.start("spark", "sparc")
    output, _ = script.communicate(timeout=60)

    assert script.returncode == 1
    assert "there is no image 'sparc'; the images are: base java" in output
    assert builds.steps == []


def test_no_later_stage_begins_after_a_failure(builds: Builds) -> None:
    script = builds.start(FAILING="java")
    script.communicate(timeout=60)

    assert script.returncode == 1
    assert "begins toolchain" not in builds.steps


@pytest.mark.parametrize("received", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_script_ends_its_builds(builds: Builds, received: signal.Signals) -> None:
    script = builds.start("object-store", HANGING="object-store", UNTIL="what never begins")
    eventually(lambda: builds.steps == ["begins object-store"])

    script.send_signal(received)
    script.communicate(timeout=60)

    assert script.returncode == 128 + received
    assert builds.steps == ["begins object-store"]
    eventually(lambda: not is_alive(int((builds.folder / "log.object-store").read_text())))


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
