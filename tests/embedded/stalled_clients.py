"""Clients that keep a connection open and send little or nothing."""

import selectors
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from tests.embedded.gateway import KEY, Gateway
from tools.embedded.ports import HOST

_SECONDS = 20


def head_of(content_length: int) -> bytes:
    """The headers of a request with a wrong signature, which is verified after the body has arrived."""
    lines = [
        "POST /v1/events HTTP/1.1",
        "host: x",
        "content-type: application/json",
        f"gamelake-key: {KEY}",
        f"gamelake-timestamp: {int(time.time())}",
        f"gamelake-signature: {'0' * 64}",
        f"content-length: {content_length}",
    ]
    return "\r\n".join([*lines, "", ""]).encode()


@contextmanager
def connections(gateway: Gateway, count: int, sent: bytes, source: str = HOST) -> Iterator[list[socket.socket]]:
    """Open `count` connections from an address that have all sent these bytes, and send nothing else."""
    to, by = (HOST, gateway.port), (source, 0)
    with ExitStack() as stack:
        opened = [stack.enter_context(socket.create_connection(to, _SECONDS, by)) for _ in range(count)]
        for each in opened:
            each.sendall(sent)
        yield opened


def await_closed(opened: Sequence[socket.socket]) -> None:
    """Return when the service has closed all of the connections; fail if it keeps one open for too long."""
    latest = time.monotonic() + _SECONDS
    with selectors.DefaultSelector() as waiting:
        for each in opened:
            waiting.register(each, selectors.EVENT_READ, each)
        while waiting.get_map():
            assert time.monotonic() < latest, f"{len(waiting.get_map())} connections are still open"
            for key, _ in waiting.select(1):
                if not _read(key.data):
                    waiting.unregister(key.data)


def _read(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65_536)
    except ConnectionError:
        return b""
