"""A port belongs to one process, from its choice until the process ends."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools.embedded.ports import HIGHEST, LOWEST, free_ports

COUNT = 3
RESERVE_ALL = """
import sys
from tools.embedded import ports
ports.LOWEST, count = int(sys.argv[1]), int(sys.argv[2])
ports.HIGHEST = ports.LOWEST + count
print(*sorted(ports.free_port() for _ in range(count)), flush=True)
input()
"""


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """Reserves all of a few ports that no other test gets, prints them and waits for a line.

    The reservations of these processes are in a file of their own.
    """
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return (sys.executable, "-c", RESERVE_ALL, str(free_ports(COUNT)), str(COUNT))


def test_a_port_that_nothing_listens_on_yet_is_given_to_one_process(command: tuple[str, ...]) -> None:
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        given = first.stdout.readline()

        second = subprocess.run(command, input="\n", capture_output=True, text=True, check=False)

        first.communicate("\n")
    assert len(set(given.split())) == COUNT
    assert "ServiceError: no free port found" in second.stderr


@pytest.mark.parametrize("ending", ["it ends", "it is killed"])
def test_the_ports_of_a_process_are_free_once_it_ends(command: tuple[str, ...], ending: str) -> None:
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        given = first.stdout.readline()
        if ending == "it is killed":
            first.kill()
        first.communicate("\n")

    second = subprocess.run(command, input="\n", capture_output=True, text=True, check=True)

    assert second.stdout == given
    assert first.returncode == (-9 if ending == "it is killed" else 0)


def test_consecutive_ports_are_in_the_range_and_given_once() -> None:
    firsts = [free_ports(COUNT) for _ in range(20)]

    ports = {port for first in firsts for port in range(first, first + COUNT)}
    assert len(ports) == 20 * COUNT
    assert min(ports) >= LOWEST
    assert max(ports) < HIGHEST
