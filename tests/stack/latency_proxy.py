"""A proxy that puts a store far away: each request takes longer to arrive, and how many are on their way is counted.

It runs in a process of its own, so that it takes no turns of the interpreter that is tested or measured.
"""

import asyncio
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import Synchronized
from random import Random
from urllib.parse import urlsplit

_METHODS = (b"GET ", b"PUT ", b"HEAD ", b"POST ", b"DELETE ")
_PIECE = 2**16


@dataclass(frozen=True, slots=True)
class Latency:
    """The added time of requests: in seconds, and the share of requests that take the longer time."""

    seconds: float = 0.040
    slow_seconds: float = 0.100
    slow_share: float = 0.01


@dataclass
class FarStore:
    """The proxy as its user sees it, with its process id; the counts are shared with its process."""

    url: str
    pid: int
    _requests: "Synchronized[int]"
    _most: "Synchronized[int]"

    @property
    def requests(self) -> int:
        return self._requests.value

    @property
    def most_at_once(self) -> int:
        """The most requests that were waiting for their reply at one time."""
        return self._most.value

    def count_anew(self) -> None:
        """Set both counts to zero."""
        self._requests.value = self._most.value = 0


@contextmanager
def far_store(target: str, latency: Latency | None = None) -> Iterator[FarStore]:
    """The store at a URL, far away for as long as the block lasts."""
    context = multiprocessing.get_context("spawn")
    requests, most, (ours, theirs) = context.Value("q", 0), context.Value("q", 0), context.Pipe()
    process = context.Process(target=_run, args=(target, latency or Latency(), theirs, requests, most), daemon=True)
    process.start()
    try:
        if not ours.poll(60):
            raise TimeoutError("the proxy has not started within 60 seconds")
        assert process.pid is not None
        yield FarStore(f"http://127.0.0.1:{ours.recv()}", process.pid, requests, most)
    finally:
        process.terminate()
        process.join()


def _run(
    target: str, latency: Latency, ready: Connection, requests: "Synchronized[int]", most: "Synchronized[int]"
) -> None:
    with suppress(KeyboardInterrupt):
        asyncio.run(_Proxy(target, latency, requests, most).serve(ready))


@dataclass
class _Proxy:
    target: str
    latency: Latency
    requests: "Synchronized[int]"
    most: "Synchronized[int]"
    waiting: int = 0
    random: Random = field(default_factory=lambda: Random(1))  # latencies are not secret

    async def serve(self, ready: Connection) -> None:
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, backlog=1_024)
        ready.send(server.sockets[0].getsockname()[1])
        async with server:
            await server.serve_forever()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = urlsplit(self.target)
        store_reader, store_writer = await asyncio.open_connection(address.hostname, address.port)
        replies = asyncio.create_task(self._replies(store_reader, writer))
        try:
            while piece := await reader.read(_PIECE):
                # A connection has one request at a time: what does not begin one belongs to the last.
                if piece.startswith(_METHODS):
                    self.requests.value += 1
                    self.waiting += 1
                    self.most.value = max(self.most.value, self.waiting)
                    slow = self.random.random() < self.latency.slow_share
                    await asyncio.sleep(self.latency.slow_seconds if slow else self.latency.seconds)
                store_writer.write(piece)
                await store_writer.drain()
        except ConnectionError:
            pass  # either end may leave at any time
        finally:
            replies.cancel()
            store_writer.close()
            writer.close()

    async def _replies(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while piece := await reader.read(_PIECE):
                if piece.startswith(b"HTTP/"):
                    self.waiting -= 1
                writer.write(piece)
                await writer.drain()
        writer.close()
