"""What can go wrong with a child process, told with the end of its log."""

from pathlib import Path
from typing import Self

from gamelake.errors import StartupError

TAIL_LINES = 20
TAIL_BYTES = 16_384


class ServiceError(StartupError):
    """An embedded service cannot be started or is gone."""


class ServiceMissingError(ServiceError):
    """What the service is made of, or the Java it runs on, is not on this machine."""


class ServiceEndedError(ServiceError):
    """The process ended by itself."""

    @classmethod
    def of(cls, name: str, exit_code: int, log_file: Path) -> Self:
        """Name the process, its exit code and what it said last."""
        return cls(f"{name} ended with exit code {exit_code}; {tail_of(log_file)}")


class ServiceUnhealthyError(ServiceError):
    """The process runs but never answered."""

    @classmethod
    def of(cls, name: str, seconds: float, log_file: Path) -> Self:
        """Name the process, the time it was given and what it said last."""
        return cls(f"{name} was not ready after {seconds:.0f} s; {tail_of(log_file)}")


def tail_of(log_file: Path) -> str:
    """The last lines of a log, under its path."""
    with log_file.open("rb") as log:
        size = log.seek(0, 2)
        log.seek(max(0, size - TAIL_BYTES))
        lines = log.read().decode(errors="replace").splitlines()[-TAIL_LINES:]
    return f"the end of {log_file}:\n" + "\n".join(lines)
