"""A TCP proxy in front of a Kafka broker that drops the responses to produce requests, or slows all responses down.

Source: https://kafka.apache.org/protocol (a message is its size, then for a request its API key, 2 bytes, the API
version, 2 bytes, and a correlation id, 4 bytes, which begins the response).
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Self

from tools.embedded.ports import HOST

_PRODUCE = 0
_SIZE_BYTES, _KEY_BYTES, _VERSION_BYTES, _ID_BYTES = 4, 2, 2, 4
_ID = slice(_KEY_BYTES + _VERSION_BYTES, _KEY_BYTES + _VERSION_BYTES + _ID_BYTES)


@dataclass(slots=True)
class _Connection:
    """A client's connection and the broker's side of it."""

    client: asyncio.StreamWriter
    broker: asyncio.StreamWriter
    produces: set[bytes] = field(default_factory=set)

    def close(self) -> None:
        self.client.close()
        self.broker.close()


@dataclass(slots=True)
class KafkaProxy:
    """Forwards everything to a broker, except responses that a test has dropped: then both connections are closed.

    Attributes:
        bytes_per_second: of the responses of one connection; 0: as fast as they come.
    """

    port: int
    broker_port: int
    bytes_per_second: int = 0
    lost: int = 0
    _to_lose: int = 0

    def lose_responses(self, count: int) -> None:
        """Close the connection instead of the next `count` produce responses: the broker has the records by then."""
        self._to_lose += count

    @contextmanager
    def running(self) -> Iterator[Self]:
        """Have the proxy run for as long as the block lasts."""
        loop = asyncio.new_event_loop()
        server = loop.run_until_complete(asyncio.start_server(self._serve, HOST, self.port))
        thread = threading.Thread(target=loop.run_forever, name="kafka-proxy")
        thread.start()
        try:
            yield self
        finally:
            asyncio.run_coroutine_threadsafe(_stop(server), loop).result(10)
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            from_broker, to_broker = await asyncio.open_connection(HOST, self.broker_port)
            connection = _Connection(writer, to_broker)
            try:
                await asyncio.gather(
                    _pass_on(reader, to_broker, lambda request: self._note(request, connection)),
                    _pass_on(from_broker, writer, lambda answer: self._may_pass(answer, connection), self._seconds),
                )
            finally:
                connection.close()
        writer.close()

    def _seconds(self, size: int) -> float:
        return size / self.bytes_per_second if self.bytes_per_second else 0.0

    def _note(self, request: bytes, connection: _Connection) -> bool:
        if int.from_bytes(request[:_KEY_BYTES], "big") == _PRODUCE:
            connection.produces.add(request[_ID])
        return True

    def _may_pass(self, answer: bytes, connection: _Connection) -> bool:
        to_produce = answer[:_ID_BYTES] in connection.produces
        if to_produce and self._to_lose:
            self._to_lose -= 1
            self.lost += 1
            return False
        return True


async def _pass_on(
    source: asyncio.StreamReader,
    target: asyncio.StreamWriter,
    may_pass: Callable[[bytes], bool],
    seconds: Callable[[int], float] = lambda _: 0.0,
) -> None:
    """Pass messages on until either end leaves, or one may not pass; each takes the seconds of its size."""
    while True:
        size = await source.readexactly(_SIZE_BYTES)
        message = await source.readexactly(int.from_bytes(size, "big"))
        if not may_pass(message):
            raise ConnectionAbortedError
        await asyncio.sleep(seconds(len(message)))
        target.write(size + message)
        await target.drain()


async def _stop(server: asyncio.Server) -> None:
    server.close()
    connections = asyncio.all_tasks() - {asyncio.current_task()}
    for connection in connections:
        connection.cancel()
    await asyncio.gather(*connections, return_exceptions=True)
