"""A child process: its log, its end, and that it ends with its parent."""

import os
import signal
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.eventually import eventually
from tests.support.process_table import descendants_of, still_running
from tools.embedded.process import ChildProcess, Program, ServiceEndedError, ServiceUnhealthyError

SLEEPS = "import time; time.sleep(600)"
WILL_NOT_BE_ASKED = (
    "import pathlib, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "pathlib.Path(sys.argv[1]).touch(); time.sleep(600)"
)


def a_program(directory: Path, code: str, *arguments: str) -> Program:
    """A Python program with its log in the directory."""
    return Program(name="a program", command=(sys.executable, "-c", code, *arguments), log_file=directory / "log")


def test_the_pid_is_that_of_the_program_and_not_of_its_tether(tmp_path: Path) -> None:
    child = ChildProcess(a_program(tmp_path, "import os; print(os.getpid(), flush=True);" + SLEEPS))

    eventually(lambda: (tmp_path / "log").read_text() == f"{child.pid}\n")
    child.stop()


def test_a_program_that_ends_gives_its_exit_code_and_the_last_of_its_log(tmp_path: Path) -> None:
    child = ChildProcess(a_program(tmp_path, "import sys; print('no space left'); sys.exit(3)"))

    with pytest.raises(ServiceEndedError, match=r"a program ended with exit code 3; the end of .*:\nno space left"):
        child.wait_until(lambda: False, timedelta(seconds=30))


def test_a_program_killed_by_a_signal_has_the_exit_code_that_a_shell_would_give(tmp_path: Path) -> None:
    child = ChildProcess(a_program(tmp_path, SLEEPS))

    os.kill(child.pid, signal.SIGKILL)

    eventually(lambda: not child.is_running())
    with pytest.raises(ServiceEndedError, match="exit code 137"):
        child.raise_if_ended()


def test_a_program_that_never_responds_is_distinguished_from_one_that_ended(tmp_path: Path) -> None:
    child = ChildProcess(a_program(tmp_path, SLEEPS))

    with pytest.raises(ServiceUnhealthyError, match="was not ready after 0 s"):
        child.wait_until(lambda: False, timedelta(0))
    child.stop()


def test_a_program_that_cannot_be_started_is_an_error_with_its_log(tmp_path: Path) -> None:
    missing = Program(name="nothing", command=("/no/such/program",), log_file=tmp_path / "log")

    with pytest.raises(ServiceEndedError, match="No such file or directory: '/no/such/program'"):
        ChildProcess(missing)


def test_a_program_that_ignores_the_request_to_end_is_killed(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    child = ChildProcess(a_program(tmp_path, WILL_NOT_BE_ASKED, str(ready)))
    eventually(ready.exists)

    child.stop(grace=timedelta(milliseconds=50))

    assert not still_running({child.pid})


def test_stopping_twice_is_as_good_as_once(tmp_path: Path) -> None:
    child = ChildProcess(a_program(tmp_path, SLEEPS))

    child.stop()
    child.stop()

    assert not child.is_running()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child when its parent is killed")
def test_a_program_ends_when_its_tether_is_killed(tmp_path: Path) -> None:
    child = ChildProcess(a_program(tmp_path, SLEEPS))
    (tether,) = {pid for pid in descendants_of(os.getpid()) if child.pid in descendants_of(pid)}

    os.kill(tether, signal.SIGKILL)

    eventually(lambda: not still_running({child.pid}))
    child.stop()
