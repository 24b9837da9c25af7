"""Which format a file has: by its name without the compression's part; Parquet says so itself."""

from enum import StrEnum
from pathlib import PurePosixPath

_PACKED = frozenset({".gz", ".gzip", ".zst", ".zstd"})
_PARQUET = b"PAR1"


class Format(StrEnum):
    """How the events of a file are written."""

    JSON_LINES = "json_lines"
    DELIMITED = "delimited"
    PARQUET = "parquet"


_BY_SUFFIX = {
    ".binpb": Format.DELIMITED,
    ".pb": Format.DELIMITED,
    ".delimited": Format.DELIMITED,
    ".parquet": Format.PARQUET,
}


def format_of(key: str, content: bytes) -> Format:
    """The format of an unpacked file; what says nothing else is lines of JSON, as Firehose writes them."""
    if content.startswith(_PARQUET):
        return Format.PARQUET
    suffixes = [suffix.lower() for suffix in PurePosixPath(key).suffixes if suffix.lower() not in _PACKED]
    return _BY_SUFFIX.get(suffixes[-1], Format.JSON_LINES) if suffixes else Format.JSON_LINES
