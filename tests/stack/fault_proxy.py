"""An HTTP proxy in front of an object store that loses what networks lose: requests, replies, and time."""

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self
from urllib.parse import unquote, urlsplit

_LIMIT = 2**20
_LONGEST_HOLD_SECONDS = 600
_NO_BODY = frozenset({204, 304})


class Fault(StrEnum):
    """What happens to a request; both ends see their connection cut."""

    REPLY_LOST = "reply_lost"  # the store has done it
    REQUEST_LOST = "request_lost"  # the store has never heard of it


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request, and the status that the store gave it (0: it never got there)."""

    method: str
    path: str
    status: int


@dataclass(frozen=True, slots=True)
class _Message:
    """A request or a reply as it came over the wire."""

    first_line: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name), "")

    def encoded(self) -> bytes:
        # The proxy has said "continue" itself, with the whole body in hand.
        kept = [(key, value) for key, value in self.headers if key.lower() != "expect"]
        return "\r\n".join([self.first_line, *(f"{k}: {v}" for k, v in kept), "", ""]).encode("latin-1") + self.body


@dataclass(frozen=True, slots=True)
class Hold:
    """A request that waits in front of the store until the test lets it go."""

    method: str
    path_part: str
    arrived: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def applies(self, method: str, path: str) -> bool:
        """Return True if this request is the one; only the first is held."""
        return method == self.method and self.path_part in path and not self.arrived.is_set()


@dataclass(slots=True)
class _Rule:
    method: str
    path_part: str
    fault: Fault
    left: int

    def applies(self, method: str, path: str) -> bool:
        return self.left > 0 and method == self.method and self.path_part in path


@dataclass(slots=True)
class FaultProxy:
    """Passes everything on to the store at `target`, except the faults that a test has asked for."""

    target: str
    exchanges: list[Exchange] = field(default_factory=list)
    faults: list[Exchange] = field(default_factory=list)
    _rules: list[_Rule] = field(default_factory=list)
    _holds: list[Hold] = field(default_factory=list)
    _port: int = 0

    @property
    def url(self) -> str:
        """Where the store seems to be."""
        return f"http://127.0.0.1:{self._port}"

    def lose(self, fault: Fault, method: str, path_part: str, times: int = 1) -> None:
        """Let the next requests go wrong whose path holds `path_part`."""
        self._rules.append(_Rule(method, path_part, fault, times))

    def hold(self, method: str, path_part: str) -> Hold:
        """Stop the next request whose path holds `path_part` until it is released."""
        hold = Hold(method, path_part)
        self._holds.append(hold)
        return hold

    def forget(self) -> None:
        """Pass everything on again, what is held first, and remember nothing."""
        for hold in self._holds:
            hold.released.set()
        for each in (self.exchanges, self.faults, self._rules, self._holds):
            each.clear()

    @contextmanager
    def running(self) -> Iterator[Self]:
        """Have the proxy run for as long as the block lasts."""
        loop = asyncio.new_event_loop()
        server = loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_LIMIT))
        self._port = server.sockets[0].getsockname()[1]
        thread = threading.Thread(target=loop.run_forever, name="fault-proxy")
        thread.start()
        try:
            yield self
        finally:
            self.forget()
            asyncio.run_coroutine_threadsafe(_stop(server), loop).result(10)
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _read_message(reader, on_continue=writer)) is not None:
                reply = await self._pass_on(request)
                if reply is None:
                    break
                writer.write(reply.encoded())
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # either end may leave at any time, and so may the test
        finally:
            writer.close()

    async def _pass_on(self, request: _Message) -> _Message | None:
        """The store's reply, or nothing if a fault ends the connection."""
        method, target, _ = request.first_line.split(" ", 2)
        path = unquote(urlsplit(target).path)
        for hold in self._holds:
            if hold.applies(method, path):
                hold.arrived.set()
                await asyncio.to_thread(hold.released.wait, _LONGEST_HOLD_SECONDS)
        fault = self._fault(method, path)
        if fault is Fault.REQUEST_LOST:
            self.faults.append(Exchange(method, path, 0))
            return None
        reply = await self._ask_store(request, method)
        exchange = Exchange(method, path, int(reply.first_line.split(" ")[1]) if reply else 0)
        self.exchanges.append(exchange)
        if fault is Fault.REPLY_LOST:
            self.faults.append(exchange)
            return None
        return reply

    async def _ask_store(self, request: _Message, method: str) -> _Message | None:
        """A connection for each request: the store ends those that are idle, and a held request is idle for long."""
        address = urlsplit(self.target)
        tls = ssl.create_default_context() if address.scheme == "https" else None
        reader, writer = await asyncio.open_connection(address.hostname, address.port, limit=_LIMIT, ssl=tls)
        try:
            writer.write(request.encoded())
            await writer.drain()
            return await _read_message(reader, results=method)
        finally:
            writer.close()

    def _fault(self, method: str, path: str) -> Fault | None:
        for rule in self._rules:
            if rule.applies(method, path):
                rule.left -= 1
                return rule.fault
        return None


async def _stop(server: asyncio.Server) -> None:
    server.close()
    connections = asyncio.all_tasks() - {asyncio.current_task()}
    for connection in connections:
        connection.cancel()
    await asyncio.gather(*connections, return_exceptions=True)


async def _read_message(
    reader: asyncio.StreamReader, on_continue: asyncio.StreamWriter | None = None, results: str = ""
) -> _Message | None:
    """The next message of a connection, None at its end; `answers` is the method that a reply belongs to."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first_line, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    headers = tuple((key, value.strip()) for key, _, value in (line.partition(":") for line in lines))
    message = _Message(first_line, headers, b"")
    if results and _is_interim(first_line):
        return await _read_message(reader, results=results)
    if on_continue and message.header("expect").lower() == "100-continue":
        on_continue.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    has_body = results != "HEAD" and not (results and int(first_line.split(" ")[1]) in _NO_BODY)
    return _Message(first_line, headers, await _read_body(reader, message) if has_body else b"")


def _is_interim(status_line: str) -> bool:
    return status_line.split(" ")[1].startswith("1")


async def _read_body(reader: asyncio.StreamReader, message: _Message) -> bytes:
    if "chunked" in message.header("transfer-encoding").lower():
        return b"".join([part async for part in _chunks(reader)])
    return await reader.readexactly(int(message.header("content-length") or 0))


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """A chunked body, as it came."""
    while True:
        line = await reader.readuntil(b"\r\n")
        size = int(line.split(b";")[0], 16)
        yield line + await reader.readexactly(size + 2)
        if size == 0:
            return
