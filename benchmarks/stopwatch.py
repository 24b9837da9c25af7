"""Wall and CPU seconds of work that is done by several processes."""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from benchmarks.results import Lap

_PROC = Path("/proc")
# Fields of /proc/<pid>/stat after the command's closing bracket (proc_pid_stat(5), fields 4 and 14 to 17).
_PARENT, _TIMES = 1, slice(11, 15)
# user, nice, system, irq, softirq and steal of the first line of /proc/stat (proc_stat(5)).
_BUSY = (1, 2, 3, 6, 7, 8)


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
            return Lap(seconds=seconds, cpu_seconds=None, kafka_cpu_seconds=None, other_cpu_seconds=None)
        tree, kafka, machine = (after - before for after, before in zip(now, self._cpu, strict=True))
        return Lap(
            seconds=round(seconds, 3),
            cpu_seconds=round(tree, 2),
            kafka_cpu_seconds=round(kafka, 2),
            other_cpu_seconds=round(max(machine - tree - kafka, 0), 2),
        )


def _cpu_seconds(root: int, kafka: int) -> tuple[float, float, float] | None:
    """CPU seconds so far of two process trees and of the whole machine; None on systems other than Linux."""
    if not (_PROC / "stat").exists():
        return None
    ticks = os.sysconf("SC_CLK_TCK")
    processes = _processes()
    return _tree_ticks(processes, root) / ticks, _tree_ticks(processes, kafka) / ticks, machine_cpu_seconds()


def machine_cpu_seconds() -> float:
    """CPU seconds so far of all that runs on this machine; 0 on systems other than Linux."""
    if not (_PROC / "stat").exists():
        return 0.0
    machine = (_PROC / "stat").read_text().splitlines()[0].split()
    return sum(int(machine[field]) for field in _BUSY) / os.sysconf("SC_CLK_TCK")


def process_cpu_seconds(root: int) -> float:
    """CPU seconds so far of a process with its descendants; 0 on systems other than Linux."""
    if not (_PROC / "stat").exists():
        return 0.0
    return _tree_ticks(_processes(), root) / os.sysconf("SC_CLK_TCK")


def _processes() -> dict[int, tuple[int, int]]:
    """Parent and CPU ticks of each process, its ended children's ticks included."""
    found = {}
    for folder in _PROC.iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:  # it has just ended: its parent has its ticks
                continue
            found[int(folder.name)] = (int(fields[_PARENT]), sum(map(int, fields[_TIMES])))
    return found


def _tree_ticks(processes: dict[int, tuple[int, int]], root: int) -> int:
    tree, grew = {root}, True
    while grew:
        children = {pid for pid, (parent, _) in processes.items() if parent in tree} - tree
        tree |= children
        grew = bool(children)
    return sum(processes[pid][1] for pid in tree if pid in processes)
