"""A service that stays unhealthy is ended, so that Docker restarts it; one that is late once, or starts, is not."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.eventually import eventually
from tests.unit.compose.configured import COMPOSE

MOST, MOST_AT_START = 3, 5


class Container:
    """A process that stands for a service's, and the checks of its health."""

    def __init__(self, folder: Path) -> None:
        self.service = subprocess.Popen(["/bin/sleep", "600"])
        self._environment = {
            "PATH": "/usr/bin:/bin",
            "HEALTHCHECK_FOLDER": str(folder),
            "HEALTHCHECK_PROCESS": str(self.service.pid),
            "HEALTHCHECK_MOST": str(MOST),
            "HEALTHCHECK_MOST_AT_START": str(MOST_AT_START),
            "HEALTHCHECK_PAUSE": "0",
        }

    def check(self, *command: str, times: int = 1, **variables: str) -> int:
        """Check the service's health; returns the last exit code."""
        script = ("sh", str(COMPOSE / "healthcheck.sh"), *command)
        environment = self._environment | variables
        return [subprocess.run(script, env=environment, check=False).returncode for _ in range(times)][-1]

    @property
    def has_ended(self) -> bool:
        return self.service.poll() is not None


@pytest.fixture
def container(tmp_path: Path) -> Iterator[Container]:
    """A service that has just started."""
    container = Container(tmp_path)
    yield container
    container.service.kill()
    container.service.wait()


def test_a_service_that_was_healthy_is_ended_after_some_failures_in_a_row(container: Container) -> None:
    assert container.check("true") == 0
    assert container.check("false", times=MOST - 1) == 1
    assert not container.has_ended

    assert container.check("false") == 1

    eventually(lambda: container.has_ended, timeout=20)


def test_failures_that_a_success_interrupts_do_not_add_up(container: Container) -> None:
    container.check("true")
    for _ in range(3):
        container.check("false", times=MOST - 1)
        container.check("true")

    assert not container.has_ended


def test_a_service_that_was_never_healthy_has_the_time_of_a_start(container: Container) -> None:
    container.check("false", times=MOST_AT_START - 1)
    assert not container.has_ended

    container.check("false")

    eventually(lambda: container.has_ended, timeout=20)


def test_a_check_sees_its_arguments_as_they_are(container: Container) -> None:
    assert container.check("sh", "-c", '[ "$1" = "a  b" ]', "sh", "a  b") == 0


def test_a_service_that_starts_is_healthy_as_soon_as_it_responds(container: Container, tmp_path: Path) -> None:
    responds_at_the_second_time = f"[ -f '{tmp_path}/asked' ] || {{ touch '{tmp_path}/asked'; false; }}"

    assert container.check("sh", "-c", responds_at_the_second_time, HEALTHCHECK_PAUSE="60") == 0


def test_a_healthy_service_is_asked_once_after_the_pause(container: Container, tmp_path: Path) -> None:
    container.check("true")
    started = time.monotonic()

    assert container.check("sh", "-c", f"echo asked >>'{tmp_path}/asked'; false", HEALTHCHECK_PAUSE="2") == 1

    assert time.monotonic() - started >= 2
    assert (tmp_path / "asked").read_text() == "asked\n"
