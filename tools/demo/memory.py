"""How much memory this process and everything that it has started take."""

import os
import subprocess
from collections import defaultdict

_KIB = 1024


def tree_bytes() -> int:
    """Resident bytes of all processes below this one and of itself; what they share is counted for each of them."""
    listing = subprocess.run(("ps", "-A", "-o", "pid=,ppid=,rss="), capture_output=True, text=True, check=True).stdout  # noqa: S607 # ps has another place on each system
    return resident_bytes(listing, os.getpid())


def resident_bytes(listing: str, root: int) -> int:
    """Add up a tree of processes, given `pid ppid kibibytes` for each process of the machine."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    resident: dict[int, int] = {}
    for line in listing.splitlines():
        pid, parent, kibibytes = (int(word) for word in line.split())
        children[parent].append(pid)
        resident[pid] = kibibytes * _KIB
    total, waiting = 0, [root]
    while waiting:
        pid = waiting.pop()
        total += resident.get(pid, 0)
        waiting += children[pid]
    return total
