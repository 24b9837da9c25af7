"""Files are decompressed by their first bytes, completely or not at all, and never beyond the limit."""

import gzip
from collections.abc import Callable

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from gamelake.streaming.files.decompression import pieces
from gamelake.streaming.files.formats.events import TooLargeFileError, UnreadableFileError
from gamelake.streaming.files.reading import FileFormat, format_of
from tests.unit.properties import examples

LIMIT = 10**6
Pack = Callable[[bytes], bytes]
PACKERS: list[Pack] = [gzip.compress, zstandard.ZstdCompressor(write_checksum=True).compress]


def decompressed(stored: bytes, limit: int) -> bytes:
    return b"".join(pieces(memoryview(stored), limit))


@pytest.mark.parametrize("pack", PACKERS)
@examples(30)
@given(st.lists(st.binary(max_size=5_000), min_size=1, max_size=4))
def test_several_members_are_decompressed_in_order(pack: Pack, parts: list[bytes]) -> None:
    assert decompressed(b"".join(pack(part) for part in parts), LIMIT) == b"".join(parts)


@pytest.mark.parametrize("pack", PACKERS)
@pytest.mark.parametrize("lost", [1, 5, 12])
def test_a_truncated_file_is_reported(pack: Pack, lost: int) -> None:
    with pytest.raises(UnreadableFileError, match="truncated"):
        decompressed(pack(b"some content" * 1000)[:-lost], LIMIT)


@pytest.mark.parametrize("pack", PACKERS)
def test_a_damaged_file_is_reported(pack: Pack) -> None:
    content = bytearray(pack(bytes(range(256)) * 40))
    content[20:60] = b"\0" * 40

    with pytest.raises(UnreadableFileError):
        decompressed(bytes(content), LIMIT)


@pytest.mark.parametrize("pack", PACKERS)
def test_a_bomb_costs_no_more_than_the_limit(pack: Pack) -> None:
    with pytest.raises(TooLargeFileError, match="more than 1000000 bytes"):
        decompressed(pack(b"\0" * 50_000_000), LIMIT)


def test_a_file_without_compression_stays_as_it_is_whatever_its_name() -> None:
    assert decompressed(b'{"event_id": "a"}\n', LIMIT) == b'{"event_id": "a"}\n'
    assert decompressed(b"", LIMIT) == b""


@pytest.mark.parametrize(
    ("key", "content", "expected"),
    [
        ("a.json.gz", b"{}", FileFormat.JSON_LINES),
        ("2026/11/22/no-suffix", b"{}", FileFormat.JSON_LINES),
        ("a.v2.jsonl", b"{}", FileFormat.JSON_LINES),
        ("a.binpb.zst", b"\x00", FileFormat.DELIMITED),
        ("A.PB", b"\x00", FileFormat.DELIMITED),
        ("a.parquet", b"PAR1", FileFormat.PARQUET),
        ("a.json", b"PAR1...", FileFormat.PARQUET),
    ],
)
def test_the_format_follows_from_the_name_and_that_of_parquet_from_the_content(
    key: str, content: bytes, expected: FileFormat
) -> None:
    assert format_of(key, content) is expected
