"""Free ports of this machine."""

import random
import socket

from tools.embedded.process import ServiceError

HOST = "127.0.0.1"
# Below the range that systems give to outgoing connections (Linux from 32768, macOS from 49152): while a broker is
# down, a client that keeps connecting to a port of that range can end up connected to itself and hold the port.
LOWEST, HIGHEST = 20_000, 32_000
ATTEMPTS = 100


def free_port() -> int:
    """A port that is free now; another process may still take it before the service starts.

    Raises:
        ServiceError: all ports that were tried are in use.
    """
    for port in random.sample(range(LOWEST, HIGHEST), ATTEMPTS):
        if _can_bind(port):
            return port
    raise ServiceError(f"no free port found between {LOWEST} and {HIGHEST}")


def accepts_connections(port: int) -> bool:
    """Whether something listens on a port of this machine."""
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True


def _can_bind(port: int) -> bool:
    with socket.socket() as candidate:
        try:
            candidate.bind((HOST, port))
        except OSError:
            return False
    return True
