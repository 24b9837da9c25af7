"""Bodies are read within their limits, and decompressed within theirs."""

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest
import zstandard
from granian.rsgi import ProtocolClosed  # type: ignore[attr-defined] # exported, but not by its type

from services.gateway.errors import BodyTimeoutError, BodyTooLargeError, UnreadableBodyError
from services.gateway.request_body import BodyReader, decompress
from services.gateway.settings import BodyLimits

BODY = b'{"events": []}'
LIMITS = BodyLimits(size=100, decompressed=1000, events=10, timeout=timedelta(seconds=0.05))


@dataclass
class Body:
    """A body that arrives in chunks; if `cut`, its end never arrives; if `closed`, the connection ends before it."""

    chunks: list[bytes]
    cut: bool = False
    closed: bool = False
    read: int = 0
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self) -> bytes:
        """All chunks."""
        return b"".join([chunk async for chunk in self])

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """The chunks."""
        for chunk in self.chunks:
            self.read += len(chunk)
            yield chunk
        if self.cut:
            await self.ended.wait()
        if self.closed:
            raise ProtocolClosed


def read(body: Body, content_length: str = "") -> bytes:
    return asyncio.run(BodyReader(LIMITS).read(content_length, body))


@pytest.mark.parametrize("content_length", ["", "100"])
def test_a_body_of_the_largest_size_is_accepted(content_length: str) -> None:
    assert read(Body([b"a" * 60, b"b" * 40]), content_length) == b"a" * 60 + b"b" * 40


@pytest.mark.parametrize("content_length", ["", "100"])
@pytest.mark.parametrize(
    ("body", "error"),
    [(Body([b"a" * 60], closed=True), UnreadableBodyError), (Body([b"x"], cut=True), BodyTimeoutError)],
    ids=["closed", "not in time"],
)
def test_a_body_that_does_not_arrive_whole_is_refused(body: Body, error: type[Exception], content_length: str) -> None:
    with pytest.raises(error):
        read(replace(body, ended=asyncio.Event()), content_length)


def test_a_refused_body_is_read_until_its_sender_closes_the_connection() -> None:
    body = Body([b"a" * 60], closed=True)

    asyncio.run(BodyReader(LIMITS).drain(body))

    assert body.read == 60


@pytest.mark.parametrize("length", ["101", "9" * 30, "9" * 5_000, "-1", "1e1", "x", "\u00b2", "\u0661"])
def test_a_content_length_over_the_limit_or_that_is_not_a_number_is_refused(length: str) -> None:
    with pytest.raises(BodyTooLargeError):
        BodyReader(LIMITS).expected_size(length)


@pytest.mark.parametrize(("chunks", "read_bytes"), [(8, 400), (1000, 850)], ids=["all of it", "not for ever"])
def test_a_chunked_body_over_the_limit_is_drained_so_that_its_sender_gets_the_response(
    chunks: int, read_bytes: int
) -> None:
    body = Body([b"x" * 50] * chunks)

    with pytest.raises(BodyTooLargeError):
        read(body)

    assert body.read == read_bytes


def test_an_empty_body_is_unreadable() -> None:
    with pytest.raises(UnreadableBodyError):
        read(Body([]))


def test_a_body_without_a_content_length_may_have_the_largest_size() -> None:
    assert [BodyReader(LIMITS).expected_size(length) for length in ("", "7")] == [LIMITS.size, 7]


@pytest.mark.parametrize("encoding", ["", "identity", "gzip", "zstd"])
def test_a_body_is_decompressed_to_the_original(encoding: str) -> None:
    compressors: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "zstd": zstandard.compress}
    compress = compressors.get(encoding, bytes)

    assert decompress(compress(BODY), encoding, 100) == BODY


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_a_bomb_is_refused_at_the_limit(compress: Callable[[bytes], bytes]) -> None:
    encoding = "gzip" if compress is gzip.compress else "zstd"
    bomb: bytes = compress(bytes(50_000_000))

    with pytest.raises(BodyTooLargeError):
        decompress(bomb, encoding, 1_000_000)


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (BODY, "gzip"),
        (gzip.compress(BODY)[:-1], "gzip"),
        (gzip.compress(BODY) + b"more", "gzip"),
        (zlib.compress(BODY), "gzip"),
        (BODY, "zstd"),
        (zstandard.compress(BODY)[:-1], "zstd"),
        (zstandard.compress(BODY) + b"more", "zstd"),
        (zstandard.compress(bytes(range(256)) * 40)[:-1], "zstd"),
        (zstandard.compress(BODY) + bytes(1000), "zstd"),
        (b"", "zstd"),
    ],
    # Compressed by gzip a body has the time in it, but a test's name must not change from second to second.
    ids=["plain", "cut", "longer", "zlib", "plain", "cut", "longer", "cut later", "much longer", "empty"],
)
def test_a_broken_compressed_body_is_unreadable(body: bytes, encoding: str) -> None:
    with pytest.raises(UnreadableBodyError):
        decompress(body, encoding, 100)
