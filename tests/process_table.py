"""Looks at the machine's processes, on Linux and macOS alike."""

import subprocess


def descendants_of(pid: int) -> set[int]:
    """The children of a process, their children, and so on."""
    parents = _parents()
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def still_running(pids: set[int]) -> set[int]:
    """Those of the processes that have not ended; one that nobody has reaped yet has."""
    return pids & _parents().keys()


def _parents() -> dict[int, int]:
    command = ("/bin/ps", "-A", "-o", "pid=,ppid=,stat=")
    listing = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = (line.split() for line in listing.stdout.splitlines())
    return {int(pid): int(parent) for pid, parent, state in rows if not state.startswith("Z")}
