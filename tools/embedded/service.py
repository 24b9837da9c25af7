"""Base class of embedded services: a directory, a process, a health check."""

from abc import ABC, abstractmethod
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from tools.embedded.process import ChildProcess, Program, ServiceError, ServiceMissingError

REPOSITORY = Path(__file__).resolve().parents[2]
CONTRACTS = REPOSITORY / "contracts"


class EmbeddedService(ABC):
    """A service with its state in one directory; it keeps its port over restarts.

    As a context manager it runs for as long as the block lasts.
    """

    name: ClassVar[str]
    deadline: ClassVar[timedelta] = timedelta(seconds=60)

    def __init__(self, directory: Path) -> None:
        self.directory = directory.resolve()
        self._process: ChildProcess | None = None

    @abstractmethod
    def program(self) -> Program:
        """Return the program to run; called at each start, so it may prepare the directory."""

    @abstractmethod
    def is_healthy(self) -> bool:
        """Return True if the service responds."""

    @property
    def process(self) -> ChildProcess:
        """The process of the latest start.

        Raises:
            ServiceError: the service was never started.
        """
        if self._process is None:
            raise ServiceError(f"{self.name} was not started")
        return self._process

    def launch(self) -> None:
        """Start the process without waiting, so that several services can start at the same time."""
        if self._process is not None and self._process.is_running():
            raise ServiceError(f"{self.name} runs already")
        self._process = ChildProcess(self.program())

    def wait_until_healthy(self) -> None:
        """Return when the service is healthy; stop it if that fails.

        Raises:
            ServiceError: it ended, or was not healthy in time.
        """
        try:
            self.process.wait_until(self.is_healthy, self.deadline)
        except BaseException:
            self.stop()
            raise

    def start(self) -> None:
        """Start the process and return when it is healthy; a restart has the same port and state."""
        self.launch()
        self.wait_until_healthy()

    def stop(self) -> None:
        """Stop the service with SIGTERM."""
        if self._process is not None:
            self._process.stop()

    def kill(self) -> None:
        """Stop the service with SIGKILL, as in a crash."""
        self.process.kill()

    def __enter__(self) -> Self:
        """Start the service."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop the service."""
        self.stop()


def fetched(path: Path) -> Path:
    """Check that a path exists that `make setup` creates; returns it.

    Raises:
        ServiceMissingError: it does not exist.
    """
    if not path.exists():
        raise ServiceMissingError(f"{path} is missing: run `make setup`")
    return path
