"""Connections that break the rules of TLS and HTTP: slow, contradictory, oversized, undecodable or cut off.

Each kind sends to the gateway as one client, and returns what came back: the statuses of responses, or
that the connection was closed without one. None of them may have another effect.
"""

import json
import socket
import ssl
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from types import MappingProxyType

from services.gateway.authentication import KEY_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, sign
from tests.embedded.fuzzed_requests import MARK
from tests.embedded.gateway import KEY, SECRET, events
from tools.embedded.ports import HOST

CLOSED = "closed"
_TIMEOUT_SECONDS = 30
_REFUSED = frozenset({"400", "401", "404", "405", "408", "413", "414", "415", "429", "431", CLOSED})
_SEPARATORS = (b"\n", b"\r", b"\r\n ", b"\r\n\t", b"\0", b"\r\r\n")


@dataclass(frozen=True, slots=True)
class Target:
    """The gateway's port, what its clients trust, and the address that they connect from."""

    port: int
    tls: ssl.SSLContext
    source: str

    def tcp(self) -> socket.socket:
        """A connection without TLS."""
        return socket.create_connection((HOST, self.port), _TIMEOUT_SECONDS, (self.source, 0))

    def connect(self) -> ssl.SSLSocket:
        return self.tls.wrap_socket(self.tcp(), server_hostname=HOST)

    def exchange(self, sent: bytes) -> str:
        """Send bytes. Return the status of the first response."""
        with self.connect() as connection:
            _send(connection, sent)
            return _status(connection)


Send = Callable[[Target, Random], str]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of connection, and the results that it may have."""

    send: Send
    results: frozenset[str] = _REFUSED


def _send(connection: socket.socket, sent: bytes) -> None:
    """Send what the peer takes: it may have closed the connection."""
    try:
        connection.sendall(sent)
    except OSError:
        return


def _status(connection: socket.socket) -> str:
    """The status of the response on a connection; reads until it ends, is closed, or nothing more comes."""
    found = b""
    try:
        while b"\r\n\r\n" not in found and (received := connection.recv(65_536)):
            found += received
    except OSError:
        pass
    line = found.split(b"\r\n", 1)[0].split(b" ")
    return line[1].decode() if len(line) > 1 and line[0] == b"HTTP/1.1" else CLOSED


def _signed(body: bytes, key: str = KEY, secret: str = SECRET) -> dict[str, str]:
    timestamp = str(int(time.time()))
    return {
        "host": HOST,
        "content-type": "application/json",
        KEY_HEADER: key,
        TIMESTAMP_HEADER: timestamp,
        SIGNATURE_HEADER: sign(secret.encode(), timestamp, body),
    }


def _head(headers: Mapping[str, str], *lines: bytes, start: bytes = b"POST /v1/events HTTP/1.1") -> bytes:
    """A request's head: its first line, its headers, and more lines as they are."""
    named = [f"{name}: {value}".encode("latin-1") for name, value in headers.items()]
    return b"\r\n".join([start, *named, *lines, b"", b""])


def _body() -> bytes:
    """A valid body whose events must never arrive."""
    return json.dumps({"events": events(2, gamer_id=MARK)}).encode()


def _chunked(body: bytes, extension: bytes = b"", end: bytes = b"\r\n") -> bytes:
    return b"%x%s%s%s%s0\r\n\r\n" % (len(body), extension, end, body, end)


def _slow_headers(target: Target, random: Random) -> str:
    head = _head(_signed(b""), b"content-length: 0")
    with target.connect() as connection:
        for start in range(0, random.randrange(len(head) - 2), 40):
            _send(connection, head[start : start + 40])
        return _status(connection)


def _slow_body(target: Target, random: Random) -> str:
    body = _body()
    with target.connect() as connection:
        _send(connection, _head(_signed(body), b"content-length: %d" % len(body)))
        _send(connection, body[: random.randrange(len(body))])
        return _status(connection)


def _cut_off_body(target: Target, random: Random) -> str:
    body = _body()
    with target.connect() as connection:
        _send(connection, _head(_signed(body), b"content-length: %d" % len(body)))
        _send(connection, body[: random.randrange(len(body))])
        # The close sends a reset.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return CLOSED


def _contradictory_lengths(target: Target, random: Random) -> str:
    """Lengths that two readers would take differently, with a signed request where the body ends for one of them."""
    hidden_body = _body()
    hidden = _head(_signed(hidden_body), b"content-length: %d" % len(hidden_body)) + hidden_body
    body = b"0\r\n\r\n" + hidden
    one, other = b"content-length: %d" % len(body), b"content-length: %d" % random.choice([0, 5, len(body) + 1])
    lines = [
        [one, other],
        [one, b"content-length: , %d" % len(body)],
        [b"content-length: %d, %d" % (len(body), len(body) - 1)],
        [b"transfer-encoding: xchunked", one],
        [b"transfer-encoding: chunked, identity", one],
        [b"transfer-encoding: chunked, chunked"],
        [b"transfer-encoding : chunked", one],
        [b"transfer-encoding:\x0bchunked", one],
        [b"content-length: %s" % random.choice([b"+5", b"-1", b"0x5", b"5 5", b"1e1", b"\xb2", b"", b"9" * 40])],
    ]
    return target.exchange(_head(_signed(body), *random.choice(lines)) + body)


def _two_lengths(target: Target, random: Random) -> str:
    """A chunked body with a content length too, in either order: chunks decide, and the rest is not a request."""
    body = _body()
    lines = [b"transfer-encoding: chunked", b"content-length: %d" % random.choice([0, 4, len(body)])]
    random.shuffle(lines)
    wrong = _signed(body) | {SIGNATURE_HEADER: "0" * 64}
    return target.exchange(_head(wrong, *lines) + _chunked(body))


def _odd_chunks(target: Target, random: Random) -> str:
    body = _body()
    size = b"%x" % len(body)
    bodies = [
        _chunked(body, extension=b";" + b"a" * random.choice([20_000, 100_000])),
        _chunked(body, end=b"\n"),
        b"-" + _chunked(body),
        b"0x" + _chunked(body),
        b"f" * 17 + b"\r\n" + body,
        b"%x\r\n" % (len(body) - 1) + body + b"\r\n0\r\n\r\n",
        size + b" \0\r\n" + body + b"\r\n0\r\n\r\n",
        b"\r\n" + _chunked(body),
        size + b"\r\n" + body + b"\r\n0\r\n" + b"x: " + b"a" * 100_000 + b"\r\n\r\n",
        b"g\r\n" + body,
    ]
    # Those that are well-formed all the same have a wrong signature.
    wrong = _signed(body) | {SIGNATURE_HEADER: "0" * 64}
    return target.exchange(_head(wrong, b"transfer-encoding: chunked") + random.choice(bodies))


def _oversized_headers(target: Target, random: Random) -> str:
    many = [b"x-%d: %s" % (number, b"a" * random.choice([1, 200])) for number in range(random.choice([110, 2000]))]
    large = [b"x: " + b"a" * random.choice([20_000, 100_000, 400_000])]
    start = b"GET /%s HTTP/1.1" % (b"a" * random.choice([70_000, 200_000]))
    sent = random.choice([_head(_signed(b""), *many), _head(_signed(b""), *large), _head(_signed(b""), start=start)])
    return target.exchange(sent)


def _broken_lines(target: Target, random: Random) -> str:
    """Separators that only some readers take for one, and a hidden header or request after them."""
    separator = random.choice(_SEPARATORS)
    lines = [
        b"x: a" + separator + b"transfer-encoding: chunked",
        b"x" + separator + b": a",
        b": a",
        b"x y: a",
        separator + b"x: a",
    ]
    body = _body()
    wrong = _signed(body) | {SIGNATURE_HEADER: "0" * 64}
    return target.exchange(_head(wrong, random.choice(lines), b"content-length: %d" % len(body)) + body)


def _broken_starts(target: Target, random: Random) -> str:
    start = random.choice(
        [
            b"POST /v1/events",
            b"POST  /v1/events  HTTP/1.1",
            b"POST /v1/events HTTP/1.2",
            b"POST /v1/events HTTP/9.9",
            b"PRI * HTTP/2.0",
            b"CONNECT %s:1 HTTP/1.1" % HOST.encode(),
            b"OPTIONS * HTTP/1.1",
            b"TRACE / HTTP/1.1",
            random.randbytes(random.randrange(1, 200)),
            b"\r\n" * 100,
        ]
    )
    return target.exchange(_head(_signed(b""), b"content-length: 0", b"connection: close", start=start))


def _noise(random: Random) -> bytes:
    """Bytes that are not UTF-8: the first one is never part of it, the others may be."""
    return b"\xff" + bytes(random.choice(range(0x80, 0x100)) for _ in range(random.randrange(30)))


def _undecodable_event(target: Target, random: Random) -> str:
    """A signed body whose only event is not UTF-8."""
    body = b'{"events": [{"event_name": "' + _noise(random) + b'"}]}'
    return target.exchange(_head(_signed(body), b"content-length: %d" % len(body), b"connection: close") + body)


def _undecodable(target: Target, random: Random) -> str:
    """Bytes that are not UTF-8 in a header or in the path (percent-encoded and not)."""
    noise = _noise(random)
    quoted = b"".join(b"%%%02x" % byte for byte in noise)
    body = _body()
    length, end = b"content-length: %d" % len(body), b"connection: close"
    sent = [
        _head(_signed(body), b"x: " + noise, b"content-length: 0", end),
        _head(_signed(body) | {KEY_HEADER: noise.decode("latin-1")}, length, end) + body,
        _head(_signed(body) | {SIGNATURE_HEADER: noise.decode("latin-1")}, length, end) + body,
        _head(_signed(body) | {"content-type": noise.decode("latin-1")}, length, end) + body,
        _head(_signed(b""), end, start=b"GET /v1/players/" + quoted + b" HTTP/1.1"),
        _head(_signed(b""), end, start=b"GET /v1/players/" + noise + b" HTTP/1.1"),
        _head(_signed(b""), end, start=b"GET /" + quoted + b"?" + quoted + b" HTTP/1.1"),
    ]
    return target.exchange(random.choice(sent))


def _unknown_key(target: Target, random: Random) -> str:
    body = _body()
    headers = _signed(body, key=f"key-{random.randrange(1000)}", secret=random.randbytes(16).hex())
    return target.exchange(_head(headers, b"content-length: %d" % len(body)) + body)


def _wrong_signature(target: Target, random: Random) -> str:
    body = _body()
    headers = _signed(body, secret=random.randbytes(16).hex())
    return target.exchange(_head(headers, b"content-length: %d" % len(body)) + body)


def first_message(tls: ssl.SSLContext) -> bytes:
    """The first message of a client's TLS handshake."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        tls.wrap_bio(incoming, outgoing, server_hostname=HOST).do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError("a handshake needs a response")


def _broken_handshake(target: Target, random: Random) -> str:
    hello = bytearray(first_message(target.tls))
    if random.random() < 0.5:
        del hello[random.randrange(len(hello)) :]
    else:
        hello[random.randrange(len(hello))] ^= 1 << random.randrange(8)
    plain = _head(_signed(b""), b"content-length: 0")
    with target.tcp() as connection:
        _send(connection, random.choice([bytes(hello), random.randbytes(300), plain, b"\x16\x03\x01\xff\xff"]))
        if random.random() < 0.8:
            connection.shutdown(socket.SHUT_WR)
        return _status(connection)


def _truncated_record(target: Target, random: Random) -> str:
    """A record that announces more bytes than come, or whose bytes were changed, after a whole handshake."""
    body = _body()
    request = _head(_signed(body), b"content-length: %d" % len(body)) + body
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = target.tls.wrap_bio(incoming, outgoing, server_hostname=HOST)
    with target.tcp() as connection:
        while True:
            try:
                session.do_handshake()
                break
            except ssl.SSLWantReadError:
                connection.sendall(outgoing.read())
                incoming.write(connection.recv(65_536))
        session.write(request)
        records = bytearray(outgoing.read())
        if random.random() < 0.5:
            del records[-random.randrange(1, len(request)) :]
        else:
            records[-random.randrange(1, len(request))] ^= 1
        _send(connection, bytes(records))
        connection.shutdown(socket.SHUT_WR)
        while True:
            try:
                if not connection.recv(65_536):
                    return CLOSED
            except OSError:
                return CLOSED


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "slow headers": Kind(_slow_headers),
        "slow body": Kind(_slow_body),
        "body cut off": Kind(_cut_off_body),
        "contradictory lengths": Kind(_contradictory_lengths),
        "length and chunks": Kind(_two_lengths),
        "odd chunks": Kind(_odd_chunks),
        "oversized headers": Kind(_oversized_headers),
        "broken lines": Kind(_broken_lines),
        "broken first line": Kind(_broken_starts),
        "no UTF-8": Kind(_undecodable),
        # The response rejects the event.
        "an event of no UTF-8": Kind(_undecodable_event, frozenset({"200"})),
        "unknown key": Kind(_unknown_key),
        "wrong signature": Kind(_wrong_signature),
        "broken TLS handshake": Kind(_broken_handshake),
        "truncated TLS record": Kind(_truncated_record),
    }
)
# They wait for a timeout of the gateway, so that fewer of them fit into a second.
SLOW_KINDS = frozenset({"slow headers", "slow body"})
