"""A program that is asked to end by itself, as the demo asks its job."""

import sys
from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.eventually import eventually
from tests.support.process_table import still_running
from tools.embedded.process import ChildProcess, Program, ServiceUnhealthyError

PATIENCE = timedelta(seconds=30)
# It ends with 0 only if its own child has not got the signal.
PARENT = """
import pathlib, signal, subprocess, sys, threading
stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
pathlib.Path(sys.argv[1]).touch()
stop.wait()
spared = child.poll() is None
child.kill()
sys.exit(0 if spared else 5)
"""
DEAF = """
import pathlib, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path(sys.argv[1]).touch()
time.sleep(600)
"""


def started(directory: Path, code: str) -> ChildProcess:
    """A Python program that is ready for signals."""
    ready = directory / "ready"
    command = (sys.executable, "-c", code, str(ready))
    child = ChildProcess(Program(name="a program", command=command, log_file=directory / "log"))
    eventually(ready.exists)
    return child


def test_only_the_program_is_asked_and_its_exit_code_is_given(tmp_path: Path) -> None:
    child = started(tmp_path, PARENT)

    assert child.exit_code() is None
    assert child.finish(PATIENCE) == 0
    assert child.exit_code() == 0


def test_a_program_that_has_ended_gives_its_exit_code_again(tmp_path: Path) -> None:
    child = started(tmp_path, PARENT)

    assert child.finish(PATIENCE) == child.finish(PATIENCE) == 0


def test_a_program_that_does_not_end_is_killed_and_reported(tmp_path: Path) -> None:
    child = started(tmp_path, DEAF)

    with pytest.raises(ServiceUnhealthyError, match="a program did not end within"):
        child.finish(timedelta(milliseconds=50))

    assert not still_running({child.pid})
