"""Free ports of this machine."""

import fcntl
import os
import random
import socket
import tempfile
from functools import cache
from pathlib import Path

from tools.embedded.process import ServiceError

HOST = "127.0.0.1"
# Below the range that systems give to outgoing connections (Linux from 32768, macOS from 49152): while a broker is
# down, a client that keeps connecting to a port of that range can end up connected to itself and hold the port.
LOWEST, HIGHEST = 20_000, 32_000
ATTEMPTS = 100

_given: set[int] = set()


def free_port() -> int:
    """Reserve a port that is free; see `free_ports`."""
    return free_ports(1)


def free_ports(count: int) -> int:
    """Reserve consecutive ports that are free, until this process ends.

    A service binds its port seconds after the port was chosen, and leaves the port while it restarts. No other process
    of this user gets the port from this function meanwhile; a program that does not ask this function still may.

    Args:
        count: the number of ports.

    Returns:
        The first port.

    Raises:
        ServiceError: all ports that were tried are in use.
    """
    for first in random.sample(range(LOWEST, HIGHEST - count + 1), min(ATTEMPTS, HIGHEST - count + 1 - LOWEST)):
        ports = range(first, first + count)
        if _given.isdisjoint(ports) and _lock(first, count) and all(map(_can_bind, ports)):
            _given.update(ports)
            return first
    raise ServiceError(f"no free port found between {LOWEST} and {HIGHEST}")


def accepts_connections(port: int) -> bool:
    """Return True if a program listens on a port of this machine."""
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True


def _lock(first: int, count: int) -> bool:
    """Lock the bytes of these ports in a file that all processes of this user share; False if another process has one.

    The system unlocks the bytes when the process ends, however it ends. A process's own locks do not exclude itself.
    """
    try:
        fcntl.lockf(_reservations(), fcntl.LOCK_EX | fcntl.LOCK_NB, count, first)
    except OSError:
        return False
    return True


@cache
def _reservations() -> int:
    """Open the file of the reservations, once: a process loses all its locks of a file when it closes the file."""
    path = Path(tempfile.gettempdir()) / f"gamelake-ports-{os.getuid()}"
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _can_bind(port: int) -> bool:
    with socket.socket() as candidate:
        try:
            candidate.bind((HOST, port))
        except OSError:
            return False
    return True
