"""Processes of this machine, on Linux and macOS."""

import re
import subprocess
from pathlib import Path

_KIB_PER_MIB = 1024


def descendants_of(pid: int) -> set[int]:
    """The children of a process, their children, and so on."""
    parents = _parents()
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def still_running(pids: set[int]) -> set[int]:
    """The processes that have not ended; a zombie has."""
    return pids & _parents().keys()


def resident_mib(pids: set[int]) -> float:
    """The memory of the processes in MiB; shared pages count for each process."""
    command = ("/bin/ps", "-o", "rss=", "-p", ",".join(map(str, pids)))
    listing = subprocess.run(command, capture_output=True, text=True, check=True)
    return sum(map(int, listing.stdout.split())) / _KIB_PER_MIB


def peak_mib(pids: set[int]) -> float:
    """The sum of the processes' peak memory; their present memory where the system has no peak."""
    files = [Path(f"/proc/{pid}/status") for pid in pids]
    if not all(file.exists() for file in files):
        return resident_mib(pids)
    found = (re.search(r"^VmHWM:\s+(\d+) kB$", file.read_text(), re.MULTILINE) for file in files)
    return sum(int(peak[1]) for peak in found if peak) / _KIB_PER_MIB


def anonymous_mib(pids: set[int]) -> float:
    """The memory of the processes that the system can't take back: without the pages of files; shared pages count once.

    A process that has ended has none. Only Linux says it.
    """
    return sum(map(_anonymous_kib, pids)) / _KIB_PER_MIB


def _anonymous_kib(pid: int) -> int:
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    found = re.search(r"^Pss_Anon:\s+(\d+) kB$", rollup, re.MULTILINE)
    return int(found[1]) if found else 0


def command_lines(pids: set[int]) -> str:
    """The command lines of processes, which every user of the machine may read, and their environments."""
    command = ("/bin/ps", "eww", "-o", "command=", "-p", ",".join(map(str, pids)))
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _parents() -> dict[int, int]:
    command = ("/bin/ps", "-A", "-o", "pid=,ppid=,stat=")
    listing = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = (line.split() for line in listing.stdout.splitlines())
    return {int(pid): int(parent) for pid, parent, state in rows if not state.startswith("Z")}
