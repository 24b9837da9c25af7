"""Wall and CPU seconds of work that is done by several processes."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tools.embedded.process_tree import cpu_seconds, processes

_PROC = Path("/proc")
# user, nice, system, irq, softirq and steal of the first line of /proc/stat (proc_stat(5)).
_BUSY = (1, 2, 3, 6, 7, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lap:
    """Wall time, and CPU time (user and system) of a process tree, of Kafka, and of all other processes, in seconds.

    CPU times are None on systems other than Linux.
    """

    seconds: float
    cpu_seconds: float | None = None
    kafka_cpu_seconds: float | None = None
    other_cpu_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Stopwatch:
    """Measures a process with its descendants, and Kafka separately; it starts when it is created."""

    root: int
    kafka: int
    _seconds: float
    _cpu: tuple[float, float, float] | None

    @classmethod
    def start(cls, kafka: int, root: int | None = None) -> Self:
        """Start; both arguments are process ids, `root` defaults to this process."""
        root = root or os.getpid()
        return cls(root, kafka, time.perf_counter(), _cpu_seconds(root, kafka))

    def stop(self) -> Lap:
        """The times since the start."""
        seconds = time.perf_counter() - self._seconds
        now = _cpu_seconds(self.root, self.kafka)
        if now is None or self._cpu is None:
            return Lap(seconds=seconds)
        tree, kafka, machine = (after - before for after, before in zip(now, self._cpu, strict=True))
        return Lap(
            seconds=round(seconds, 3),
            cpu_seconds=round(tree, 2),
            kafka_cpu_seconds=round(kafka, 2),
            other_cpu_seconds=round(max(machine - tree - kafka, 0), 2),
        )


def seconds_of(work: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _cpu_seconds(root: int, kafka: int) -> tuple[float, float, float] | None:
    """CPU seconds so far of two process trees and of the whole machine; None on systems other than Linux."""
    if not (_PROC / "stat").exists():
        return None
    found = processes()
    return cpu_seconds(found, root), cpu_seconds(found, kafka), machine_cpu_seconds()


def machine_cpu_seconds() -> float:
    """CPU seconds so far of all that runs on this machine; 0 on systems other than Linux."""
    if not (_PROC / "stat").exists():
        return 0.0
    machine = (_PROC / "stat").read_text().splitlines()[0].split()
    return sum(int(machine[field]) for field in _BUSY) / os.sysconf("SC_CLK_TCK")


def process_cpu_seconds(root: int) -> float:
    """CPU seconds so far of a process with its descendants; 0 on systems other than Linux."""
    return cpu_seconds(processes(), root)
