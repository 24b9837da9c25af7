"""The processes of this machine and their CPU time, as Linux lists them; none where there is no /proc."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

# Fields of /proc/<pid>/stat after the name's closing bracket (proc_pid_stat(5), fields 4 and 14 to 17).
_PARENT, _TIMES = 1, slice(11, 15)


class Process(NamedTuple):
    """A process.

    Attributes:
        parent: the id of its parent.
        ticks: its CPU time and that of its ended children, in clock ticks.
    """

    parent: int
    ticks: int


def processes() -> dict[int, Process]:
    """Return all processes by id."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        # It may end meanwhile; then its parent has its ticks.
        with suppress(OSError):
            # The name, in parentheses, may have spaces.
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
            found[int(stat.parent.name)] = Process(int(fields[_PARENT]), sum(map(int, fields[_TIMES])))
    return found


def cpu_seconds(of: Mapping[int, Process], root: int) -> float:
    """Return the CPU time that a process and all processes below it have used.

    Args:
        of: the processes, as `processes` returned them.
        root: the id of the process.
    """
    tree = {root}
    while children := {pid for pid, process in of.items() if process.parent in tree} - tree:
        tree |= children
    return sum(of[pid].ticks for pid in tree if pid in of) / os.sysconf("SC_CLK_TCK")
