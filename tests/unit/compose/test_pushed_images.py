"""Images are pushed under the registry's name, and those of two architectures are joined under one tag."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.programs import add_program
from tests.unit.compose.configured import copy_scripts

# It notes each call, and knows the digest of every image.
FAKE_DOCKER = """#!/bin/bash
echo "$*" >>"$LOG"
case "$1 $2" in
  "image inspect") printf '%s@sha256:%s\\n' "${@: -1:1}" 1 | sed 's/:v1@/@/' ;;
  "buildx imagetools") [ "$3" = create ] || echo sha256:2 ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with the script, and a fake Docker."""
    copy_scripts(tmp_path, "prebuilt.sh", "read_env.sh")
    (tmp_path / "compose/.env").write_text("GAMELAKE_TAG=0.2.0\n")
    add_program(tmp_path / "bin/docker", FAKE_DOCKER)
    return tmp_path


def push(checkout: Path, *arguments: str) -> tuple[list[str], list[str]]:
    """Run the script; returns the calls of Docker about Kafka's image, and the line of its digest."""
    environment = {"PATH": f"{checkout / 'bin'}:{os.environ['PATH']}", "LOG": str(checkout / "calls")}
    subprocess.run((str(checkout / "compose/prebuilt.sh"), "push", *arguments), env=environment, check=True)
    calls = (checkout / "calls").read_text().splitlines()
    digests = (checkout / "build/dist/images.sha256").read_text().splitlines()
    return [call for call in calls if "kafka" in call], [line for line in digests if "kafka" in line]


def test_the_engines_images_are_pushed(checkout: Path) -> None:
    calls, digests = push(checkout, "registry/owner", "v1")

    assert calls[:2] == [
        "tag gamelake/kafka:0.2.0 registry/owner/gamelake-kafka:v1",
        "push --quiet registry/owner/gamelake-kafka:v1",
    ]
    assert digests == ["1  registry/owner/gamelake-kafka"]


def test_images_of_two_architectures_are_joined(checkout: Path) -> None:
    calls, digests = push(checkout, "registry/owner", "v1", "amd64", "arm64")

    image = "registry/owner/gamelake-kafka:v1"
    assert calls[0] == f"buildx imagetools create --tag {image} {image}-amd64 {image}-arm64"
    assert digests == ["2  registry/owner/gamelake-kafka"]
