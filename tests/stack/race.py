"""Several processes that commit to one table at the same time."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.stack.writers import Way
from tools.embedded.java import spark_environment

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Writer:
    """A process, how many loops it has, and how many commits each loop makes with which pauses (seconds)."""

    name: str
    way: Way
    commits: int
    loops: int = 1
    longest_pause: float = 0

    @property
    def rows(self) -> list[tuple[str, int]]:
        return [(f"{self.name}-{loop}", number) for loop in range(self.loops) for number in range(self.commits)]


@dataclass(frozen=True, slots=True)
class Race:
    """Seconds of each commit of each loop, and of the race from the start of all to the end of the last."""

    seconds: Mapping[str, Sequence[float]]
    wall_seconds: float


def _nothing() -> None:
    """What there is to do before most races."""


def race(
    writers: Sequence[Writer], variables: Mapping[str, str], logs: Path, before: Callable[[], None] = _nothing
) -> Race:
    """Let all of them start together once all of them are warm; the commits that made them warm are not timed.

    `before` is called when they are warm, and they start when it returns.
    """
    with ExitStack() as stack:
        processes = [stack.enter_context(_running(writer, variables, logs)) for writer in writers]
        for writer, process in zip(writers, processes, strict=True):
            _read_until(process, "ready", logs / f"{writer.name}.log")
        before()
        for process in processes:
            assert process.stdin
            process.stdin.write("go\n")
            process.stdin.flush()
        started = time.perf_counter()
        seconds: dict[str, list[float]] = {}
        for writer, process in zip(writers, processes, strict=True):
            seconds |= json.loads(_read_until(process, "{", logs / f"{writer.name}.log"))
        return Race(seconds, time.perf_counter() - started)


@contextmanager
def _running(writer: Writer, variables: Mapping[str, str], logs: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.stack.writers", writer.way, writer.name, str(writer.commits)]
    command += ["--loops", str(writer.loops), "--longest-pause", str(writer.longest_pause)]
    environment = {**os.environ, **spark_environment(), **variables}
    pipe = subprocess.PIPE
    with (
        (logs / f"{writer.name}.log").open("w") as log,
        subprocess.Popen(command, env=environment, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=log, text=True) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def _read_until(process: subprocess.Popen[str], start: str, log: Path) -> str:
    """The first line that starts so; what else Spark says on its way is skipped."""
    assert process.stdout
    for line in process.stdout:
        if line.startswith(start):
            return line
    raise AssertionError(f"a writer has ended too early: {log.read_text()[-3000:]}")
