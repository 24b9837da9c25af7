"""What Kafka and the registry have in common: a directory, a process, a way to tell that they are ready."""

from abc import ABC, abstractmethod
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from tools.embedded.process import ChildProcess, Program, ServiceError, ServiceMissingError

REPOSITORY = Path(__file__).resolve().parents[2]


class EmbeddedService(ABC):
    """A service that keeps its state in one directory and its port from start to start.

    As a context manager it runs from the first line to the last.
    """

    name: ClassVar[str]
    deadline: ClassVar[timedelta] = timedelta(seconds=60)

    def __init__(self, directory: Path) -> None:
        self.directory = directory.resolve()
        self._process: ChildProcess | None = None

    @abstractmethod
    def program(self) -> Program:
        """What to run; called at each start, so it may prepare the directory."""

    @abstractmethod
    def is_healthy(self) -> bool:
        """Whether the service answers."""

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
        """Start the process without waiting for it, so that several services can get ready at once."""
        if self._process is not None and self._process.is_running():
            raise ServiceError(f"{self.name} runs already")
        self._process = ChildProcess(self.program())

    def wait_until_healthy(self) -> None:
        """Return when the service answers; when it never does, stop it.

        Raises:
            ServiceError: it ended or did not answer in time.
        """
        try:
            self.process.wait_until(self.is_healthy, self.deadline)
        except BaseException:
            self.stop()
            raise

    def start(self) -> None:
        """Start the process and return when it answers; a second start has the port and the state of the first."""
        self.launch()
        self.wait_until_healthy()

    def stop(self) -> None:
        """End the service in good order."""
        if self._process is not None:
            self._process.stop()

    def kill(self) -> None:
        """End the service as a crash would."""
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
    """A path that `make setup` fills.

    Raises:
        ServiceMissingError: it is not there.
    """
    if not path.exists():
        raise ServiceMissingError(f"{path} is missing: run `make setup`")
    return path
