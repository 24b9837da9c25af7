"""A process's own clock, which is off by some minutes and jumps while the process runs, by libfaketime.

Time of day alone is faked: monotonic clocks, and the times that the file system gives to files, stay right, as on a
machine whose clock is set.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tools.embedded.service import REPOSITORY

# Where Debian has it.
_LIBRARIES = "/usr/lib"
_LIBRARY = "*/faketime/libfaketimeMT.so.1"
# libfaketime 0.9.10 takes the monotonic deadline that Python sleeps until for a time of day, and sleep then fails.
_SLEEP = """\
import select, time
time.sleep = lambda seconds: select.select([], [], [], seconds) and None
"""


class NoFakeTimeError(Exception):
    """libfaketime is not installed."""


@dataclass(frozen=True, slots=True)
class SkewedClock:
    """The clock of the processes that are started with its environment; they see a jump within a second.

    The JVM runs with it, too.
    """

    folder: Path
    library: Path

    @classmethod
    def make(cls, folder: Path, ahead: timedelta) -> "SkewedClock":
        """A clock that is ahead, or behind if negative.

        Raises:
            NoFakeTimeError: libfaketime is not installed.
        """
        found = sorted(Path(_LIBRARIES).glob(_LIBRARY))
        if not found:
            raise NoFakeTimeError("libfaketime is missing: install it (Debian: apt-get install libfaketime)")
        folder.mkdir(parents=True)
        (folder / "sitecustomize.py").write_text(_SLEEP)
        clock = cls(folder, found[0])
        clock.set(ahead)
        return clock

    def set(self, ahead: timedelta) -> None:
        """Let it jump to a difference from the right time."""
        new = self.folder / "new"
        new.write_text(f"{ahead.total_seconds():+.0f}\n")
        # At once: a process may read it at any moment.
        new.rename(self._file)

    def now(self) -> datetime:
        """Its time, once the processes have seen the last jump."""
        return datetime.now(UTC) + timedelta(seconds=float(self._file.read_text()))

    def environment(self, others: Mapping[str, str] = os.environ) -> dict[str, str]:
        """The variables of a process that has this clock; `others` has those that the process is given besides."""
        paths = (str(self.folder), str(REPOSITORY), others.get("PYTHONPATH", ""))
        return {
            "LD_PRELOAD": str(self.library),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            # Without a cache each reading of the clock reads the file, which makes a JVM some times slower.
            "FAKETIME_CACHE_DURATION": "1",
            "DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        }

    def command(self, command: Sequence[str]) -> tuple[str, ...]:
        """A command line that starts a command with this clock, though its parent has the right one."""
        return ("env", *(f"{name}={value}" for name, value in self.environment().items()), *command)

    @property
    def _file(self) -> Path:
        return self.folder / "ahead"
