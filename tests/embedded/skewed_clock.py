"""A process's own clock, which is off by some minutes and jumps while the process runs.

The time of day of Python alone is changed: monotonic clocks, and the times that the file system gives to files, stay
right, as on a machine whose clock is set. libfaketime would change it for all code of a process, the JVM and librdkafka
too. But its version 0.9.10 takes monotonic deadlines for times of day: `time.sleep` fails with EINVAL, and
librdkafka delivers nothing and waits for ever where the clock is ahead.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tools.embedded.service import REPOSITORY

_FILE = "TEST_CLOCK_AHEAD_FILE"
# Each Python process imports it at its start, before anything else. A C type has no other way to a new method than
# through the dictionary behind its `__dict__`; a subclass in its place would not be a datetime to msgspec.
_CUSTOMIZE = f"""\
import ctypes, datetime, os, time

_file, _time, _time_ns, _now = os.environ["{_FILE}"], time.time, time.time_ns, datetime.datetime.now

def _ahead():
    with open(_file) as text:
        return int(text.read())

class _View(ctypes.Structure):
    _fields_ = [("head", ctypes.c_byte * object.__basicsize__), ("dictionary", ctypes.py_object)]

time.time = lambda: _time() + _ahead()
time.time_ns = lambda: _time_ns() + _ahead() * 1_000_000_000
_methods = _View.from_address(id(datetime.datetime.__dict__)).dictionary
_methods["now"] = classmethod(lambda cls, tz=None: _now(tz) + datetime.timedelta(seconds=_ahead()))
ctypes.pythonapi.PyType_Modified(ctypes.py_object(datetime.datetime))
"""


@dataclass(frozen=True, slots=True)
class SkewedClock:
    """The clock of the Python processes that are started with its environment; they see a jump at once."""

    folder: Path

    @classmethod
    def make(cls, folder: Path, ahead: timedelta) -> "SkewedClock":
        """A clock that is ahead, or behind if negative."""
        folder.mkdir(parents=True)
        (folder / "sitecustomize.py").write_text(_CUSTOMIZE)
        clock = cls(folder)
        clock.set(ahead)
        return clock

    def set(self, ahead: timedelta) -> None:
        """Let it jump to a difference from the right time, in whole seconds."""
        new = self.folder / "new"
        new.write_text(f"{ahead.total_seconds():.0f}")
        # At once: a process may read it at any moment.
        new.rename(self._file)

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=int(self._file.read_text()))

    def environment(self, others: Mapping[str, str] = os.environ) -> dict[str, str]:
        """The variables of a process that has this clock; `others` has those that the process is given as well."""
        paths = (str(self.folder), str(REPOSITORY), others.get("PYTHONPATH", ""))
        return {_FILE: str(self._file), "PYTHONPATH": os.pathsep.join(filter(None, paths))}

    def command(self, command: Sequence[str]) -> tuple[str, ...]:
        """A command line that starts a command with this clock, though its parent has the right one."""
        return ("env", *(f"{name}={value}" for name, value in self.environment().items()), *command)

    @property
    def _file(self) -> Path:
        return self.folder / "ahead"
