"""Row 42 of the fault matrix: no secret is in an image, a container's settings, a command, a log, or Spark's pages."""

import json
import subprocess
from collections.abc import Iterator

import pytest

from tests.stack.platform import ROOT, Stack
from tests.stack.secret_values import secret_values, shown_in
from tools.stack import page

UI, *OTHERS = ("INGEST_EVENTS_PORT", "SPARK_MASTER_PORT", "SPARK_HISTORY_PORT")


def docker(*arguments: str) -> str:
    command = ("docker", *arguments)
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout + done.stderr


def containers(stack: Stack) -> list[str]:
    return stack.compose("ps", "--all", "--quiet").split()


def test_no_secret_is_in_a_containers_settings(stack: Stack) -> None:
    assert shown_in(docker("inspect", *containers(stack))) == []


def test_no_secret_is_on_a_command_line(stack: Stack) -> None:
    shown = stack.compose("top")

    assert "services.gateway" in shown
    assert shown_in(shown) == []


def test_no_secret_is_in_an_images_history_or_settings(stack: Stack) -> None:
    images = set(docker("inspect", "--format", "{{.Image}}", *containers(stack)).split())

    for image in images:
        assert shown_in(docker("image", "history", "--no-trunc", image)) == []
    assert shown_in(docker("image", "inspect", *images)) == []


def test_no_secret_is_in_a_file_that_the_project_puts_into_its_image(stack: Stack) -> None:
    """The patterns go in by standard input; what is mounted for the running container is not the image's."""
    search = ("grep", "-rlF", "-f", "-", "/opt/gamelake", "/etc", "/home", "/tmp")  # noqa: S108 # the container's
    command = (str(ROOT / "compose/stack.sh"), "exec", "--no-TTY", "ingest", *search)
    patterns = "\n".join(sorted(secret_values()))
    found = subprocess.run(command, input=patterns, capture_output=True, text=True, timeout=120, check=False)

    assert stack.is_healthy("ingest")
    assert (found.stdout, found.returncode) == ("", 1) or (found.returncode == 2 and found.stdout == "")


def test_no_secret_is_in_a_log(stack: Stack) -> None:
    shown = stack.compose("logs", "--no-color")

    assert "ingest" in shown
    assert shown_in(shown) == []


def _spark_responses() -> Iterator[str]:
    (application,) = json.loads(page(UI, "/api/v1/applications").text)
    yield page(UI, "/environment/").text
    yield page(UI, f"/api/v1/applications/{application['id']}/environment").text
    yield page(UI, "/StreamingQuery/").text
    for port in OTHERS:
        yield page(port).text


@pytest.mark.usefixtures("stack")
def test_no_secret_is_on_sparks_pages() -> None:
    results = list(_spark_responses())

    assert "spark.executor.memory" in results[1]
    assert [shown for answer in results for shown in shown_in(answer)] == []
