"""Whether a process of this machine has ended, also where another one has its number by now.

Source: proc(5), `/proc/pid/stat` field 22 (start time) and `/proc/pid/ns/pid`.
"""

import os
from pathlib import Path

_PROC = Path("/proc")


def mark_of(process: int) -> str:
    """What tells a process from all others there ever were; empty if it doesn't run, or the system does not say."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        state, *fields = (_PROC / str(process) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    # A zombie has ended; its parent has only not been told yet.
    return "" if state in "ZX" else f"{boot} {_namespace()} {process} {fields[18]}"


def has_ended(mark: str) -> bool:
    """Whether the process with a mark is known to have ended: one of another machine or container never is."""
    parts, ours = mark.split(), mark_of(os.getpid()).split()
    is_near = bool(parts) and parts[:2] == ours[:2]
    return is_near and mark_of(int(parts[2])) != mark


def _namespace() -> str:
    return str((_PROC / "self/ns/pid").readlink())
