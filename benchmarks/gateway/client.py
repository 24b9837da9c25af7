"""A load client with little overhead: signed requests as raw HTTP on connections that stay open."""

import asyncio
import hmac
import itertools
import ssl
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import cast

from benchmarks.gateway.bodies import Body
from services.gateway.authentication import KEY_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER

# One body in this many has a new player.
_BODIES_PER_NEW_PLAYER = 10
_HEAD_END = b"\r\n\r\n"
_LENGTH = b"content-length: "
_new_players = itertools.count()


@dataclass(frozen=True, slots=True)
class Sender:
    """The address of a service, the key that signs requests, and for HTTPS what the client trusts."""

    host: str
    port: int
    key: str
    secret: bytes
    tls: ssl.SSLContext | None = None

    def requests(self, bodies: list[Body]) -> Iterator[bytes]:
        """An endless sequence of requests; each is signed when it is taken."""
        for number, body in enumerate(itertools.cycle(bodies)):
            is_new = bool(body.name) and number % _BODIES_PER_NEW_PLAYER == 0
            yield self._request(body, body.with_new_player(next(_new_players)) if is_new else body.original())

    def each_once(self, bodies: list[Body]) -> Iterator[bytes]:
        """One request for each body."""
        return (self._request(body, body.original()) for body in bodies)

    def _request(self, body: Body, content: bytes) -> bytes:
        timestamp = str(int(time.time()))
        signature = hmac.digest(self.secret, timestamp.encode() + b"." + content, "sha256").hex()
        head = (
            f"POST /v1/events HTTP/1.1\r\nhost: {self.host}\r\ncontent-type: {body.content_type}\r\n"
            f"content-length: {len(content)}\r\n{KEY_HEADER}: {self.key}\r\n{TIMESTAMP_HEADER}: {timestamp}\r\n"
            f"{SIGNATURE_HEADER}: {signature}\r\n\r\n"
        )
        return head.encode() + content


@dataclass(slots=True)
class Responses:
    """The counts of responses by status, and their latencies: seconds from when a request was due to its response."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)


class _Connection(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self, on_response: Callable[["_Connection", int], None]) -> None:
        self._on_response = on_response
        self._transport: asyncio.WriteTransport
        self._received = b""
        self.due = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's is one, but by no base class

    def send(self, request: bytes, due: float) -> None:
        """Send a request that was due at a time of the performance counter."""
        self.due = due
        self._transport.write(request)

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        received = self._received + data if self._received else data
        head = received.find(_HEAD_END)
        if head < 0 or len(received) < head + len(_HEAD_END) + _content_length(received[:head]):
            self._received = received
            return
        self._received = b""
        self._on_response(self, int(received[9:12]))


def _content_length(head: bytes) -> int:
    return int(head.lower().partition(_LENGTH)[2].partition(b"\r")[0])


class LoadClient:
    """Concurrent connections; each sends its next request after the last response, or when one is due."""

    def __init__(self, sender: Sender, connections: int) -> None:
        self._sender = sender
        self._size = connections
        self._all: list[_Connection] = []
        self._free: deque[_Connection] = deque()
        self._responses = Responses()
        self._next: Callable[[_Connection], None] = self._free.append

    async def __aenter__(self) -> "LoadClient":
        """Open the connections."""
        loop = asyncio.get_running_loop()
        for _ in range(self._size):
            _, connection = await loop.create_connection(
                lambda: _Connection(self._note), self._sender.host, self._sender.port, ssl=self._sender.tls
            )
            self._all.append(connection)
        self._free.extend(self._all)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        for connection in self._all:
            connection.close()

    async def send_at_full_speed(self, requests: Iterator[bytes], seconds: float) -> Responses:
        """Send on all connections for a number of seconds, or until all requests are sent."""
        end = time.perf_counter() + seconds

        def send_next(connection: _Connection) -> None:
            now = time.perf_counter()
            request = next(requests, None) if now < end else None
            if request is None:
                self._free.append(connection)
            else:
                connection.send(request, now)

        self._begin(send_next)
        for connection in [self._free.popleft() for _ in range(len(self._free))]:
            send_next(connection)
        return await self._wait_until_free()

    async def send_at_rate(self, requests: Iterator[bytes], per_second: float, seconds: float) -> Responses:
        """Send each request when it is due; the latency includes the wait for a free connection."""
        overdue: deque[float] = deque()

        def send_next(connection: _Connection) -> None:
            if overdue:
                connection.send(next(requests), overdue.popleft())
            else:
                self._free.append(connection)

        self._begin(send_next)
        start = time.perf_counter()
        for number in range(int(per_second * seconds)):
            due = start + number / per_second
            if (early := due - time.perf_counter()) > 0:
                await asyncio.sleep(early)
            overdue.append(due)
            if self._free:
                send_next(self._free.popleft())
        return await self._wait_until_free()

    def _begin(self, send_next: Callable[[_Connection], None]) -> None:
        self._responses = Responses()
        self._next = send_next

    def _note(self, connection: _Connection, status: int) -> None:
        self._responses.seconds.append(time.perf_counter() - connection.due)
        self._responses.statuses[status] += 1
        self._next(connection)

    async def _wait_until_free(self) -> Responses:
        while len(self._free) < self._size:
            await asyncio.sleep(0.005)
        return self._responses
