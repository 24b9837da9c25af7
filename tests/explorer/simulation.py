"""The store, the clock and the threads of a simulated world, in place of those that the platform's modules use."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from types import ModuleType, TracebackType
from typing import Self, TypeVar

import pytest

from gamelake.objects.store import Location, Store, StoredObject
from tests.explorer.world import calling_process, calling_world

Result = TypeVar("Result")

_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class MemoryStore(Store):
    """An object store in memory, which does what `Store` does (`test_the_store_in_memory_does_what_a_real_one_does`).

    Attributes:
        content: the objects by path, with the time of their last write (seconds of the world's clock).
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.location = Location(uri="s3://lake")
        self._clock = clock
        self.content: dict[str, tuple[bytes, float]] = {}

    def put_new(self, path: str, content: bytes) -> bool:
        if path not in self.content:
            self.put(path, content)
        return self.content[path][0] == content

    def put(self, path: str, content: bytes) -> None:
        self.content[path] = (content, self._clock())

    def copy(self, path: str, to: str) -> None:
        if path not in self.content:
            raise FileNotFoundError(path)
        self.put(to, self.content[path][0])

    def delete(self, path: str) -> None:
        self.content.pop(path, None)

    def get(self, path: str) -> bytes | None:
        return self.content[path][0] if path in self.content else None

    def _exists(self, path: str) -> bool:
        return path in self.content

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        found = self.get(path)
        return None if found is None else found[start : start + length]

    def objects(self, prefix: str, after: str | None = None) -> Iterator[StoredObject]:
        for path in self.paths(prefix):
            if after is not None and path <= after:
                continue
            content, written = self.content[path]
            yield StoredObject(path, len(content), _EPOCH + timedelta(seconds=written))

    def paths(self, prefix: str) -> list[str]:
        return sorted(path for path in self.content if path.startswith(_folder(prefix)))

    def folders(self, prefix: str) -> list[str]:
        start = _folder(prefix)
        inside = [path.removeprefix(start) for path in self.paths(prefix)]
        return sorted({start + path.split("/")[0] for path in inside if "/" in path})


def _folder(prefix: str) -> str:
    return f"{prefix.rstrip('/')}/" if prefix else ""


class ScheduledStore(Store):
    """A store whose operations are points of the calling world's schedule.

    Attributes:
        plain: the store that carries them out: tests use it before and after a run.
    """

    def __init__(self, plain: Store) -> None:
        self.location = plain.location
        self.plain = plain

    def put_new(self, path: str, content: bytes) -> bool:
        return _perform(f"create {path}", lambda: self.plain.put_new(path, content), is_write=True)

    def put(self, path: str, content: bytes) -> None:
        _perform(f"put {path}", lambda: self.plain.put(path, content), is_write=True)

    def copy(self, path: str, to: str) -> None:
        _perform(f"copy {path} to {to}", lambda: self.plain.copy(path, to), is_write=True)

    def delete(self, path: str) -> None:
        _perform(f"delete {path}", lambda: self.plain.delete(path), is_write=True)

    def delete_all(self, paths: Iterable[str]) -> None:
        """As Store's, one after the other."""
        for path in paths:
            self.delete(path)

    def get(self, path: str) -> bytes | None:
        return _perform(f"get {path}", lambda: self.plain.get(path))

    def get_all(self, paths: Iterable[str]) -> Iterator[bytes | None]:
        """As Store's, one after the other."""
        return map(self.get, paths)

    def missing(self, paths: Sequence[str]) -> list[str]:
        return _perform("find the missing ones", lambda: self.plain.missing(paths))

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        return _perform(f"get a range of {path}", lambda: self.plain.get_range(path, start, length))

    def objects(self, prefix: str, after: str | None = None) -> Iterator[StoredObject]:
        return iter(_perform(f"list {prefix}", lambda: list(self.plain.objects(prefix, after))))

    def paths(self, prefix: str) -> list[str]:
        return _perform(f"list {prefix}", lambda: self.plain.paths(prefix))

    def folders(self, prefix: str) -> list[str]:
        return _perform(f"list the folders of {prefix}", lambda: self.plain.folders(prefix))


def _perform(label: str, effect: Callable[[], Result], *, is_write: bool = False) -> Result:
    return calling_world().perform(label, effect, is_write=is_write)


class SimulatedTime:
    """The functions of `time` that modules of the platform call."""

    perf_counter = staticmethod(time.perf_counter)

    @staticmethod
    def monotonic() -> float:
        """The world's clock, in seconds."""
        return calling_world().now

    @staticmethod
    def time() -> float:
        """The time of day of the calling process's machine, in seconds since 1970."""
        return _EPOCH.timestamp() + calling_world().time_of_day()

    @staticmethod
    def sleep(seconds: float) -> None:
        """Sleep by the world's clock."""
        calling_world().sleep(seconds)


class SimulatedEvent:
    """`threading.Event` for threads of the world."""

    def __init__(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        """Wake those that wait."""
        self._is_set = True

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set. Return True if it is."""
        return calling_world().wait(self.is_set, timeout)


class SimulatedThread:
    """`threading.Thread` for processes of the world."""

    def __init__(self, target: Callable[[], object], name: str = "", daemon: bool | None = None) -> None:
        del daemon
        self._target, self._name = target, name
        self._has_ended: Callable[[], bool] | None = None

    def start(self) -> None:
        """Start it in the calling process."""
        self._has_ended = calling_world().spawn(self._name, self._target)

    def join(self) -> None:
        assert self._has_ended is not None
        calling_world().wait(self._has_ended)


class InlineExecutor:
    """`ThreadPoolExecutor` whose work is done by the caller, in order."""

    def __init__(self, *_: object, **__: object) -> None:
        """Take and ignore what a pool takes."""

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End; nothing is under way."""

    def map(self, function: Callable[..., Result], *values: Iterable[object]) -> list[Result]:
        return [function(*each) for each in zip(*values, strict=False)]

    def submit(self, function: Callable[..., Result], *values: object) -> "Future[Result]":
        future: Future[Result] = Future()
        future.set_result(function(*values))
        return future

    def shutdown(self, **_: object) -> None:
        """Nothing is under way."""


_REPLACEMENTS: dict[str, object] = {
    "time": SimulatedTime,
    "Thread": SimulatedThread,
    "Event": SimulatedEvent,
    "ThreadPoolExecutor": InlineExecutor,
    # Each process runs on a machine of its own: none knows of another one that it has ended.
    "process_mark": lambda _process: calling_process(),
    "process_has_ended": lambda _mark: False,
}


def simulate(monkeypatch: pytest.MonkeyPatch, *modules: ModuleType) -> None:
    """Give modules the clock, the threads and the process marks of the world."""
    for module in modules:
        for name, replacement in _REPLACEMENTS.items():
            if hasattr(module, name):
                monkeypatch.setattr(module, name, replacement)
