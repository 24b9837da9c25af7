"""Files that expand far beyond their size in the store, and the memory that reading them takes.

`python -m tests.unit.streaming_files.bombs <name>` reads one, and prints how far the resident memory rose in MiB.
"""

import gzip
import io
import resource
import sys
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from gamelake.streaming.files.plan import MIB, FileLimits
from gamelake.streaming.files.reading import FileReader, StoredFile
from tests.unit.streaming_files.contract import MESSAGE, SCHEMA_ID, line


def _repeated(row: bytes, size: int) -> Iterator[bytes]:
    piece = row * (MIB // len(row) + 1)
    return (piece for _ in range(size // len(piece)))


def _compressed(row: bytes, size: int) -> bytes:
    packer = zstandard.ZstdCompressor(level=3).compressobj()
    return b"".join([*map(packer.compress, _repeated(row, size)), packer.flush()])


def parquet_of(columns: dict[str, pa.Array]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, compression="zstd", store_schema=False)
    return sink.getvalue()


def one_text(rows: int, size: int) -> pa.Array:
    """Return one long text for all rows, which takes little room in a file."""
    return pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["x" * size]))


def _one_list(values: int) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array([0, values], pa.int32()), one_text(values, 1))


# Each with its name in the store.
BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "zeros": ("zeros.pb.gz", lambda: gzip.compress(bytes(64 * MIB))),
    "zeros-after-an-event": ("zeros.pb.gz", lambda: gzip.compress(b"\x03\x0a\x01a" + bytes(8 * MIB))),
    "empty-objects": ("objects.json.zst", lambda: _compressed(b"{}\n", 40 * MIB)),
    "events": ("events.json.zst", lambda: _compressed(line() + b"\n", 128 * MIB)),
    "delimited-events": ("events.pb.zst", lambda: _compressed(b"\x14\x0a\x12" + b"a" * 18, 48 * MIB)),
    "one-line": ("line.json.zst", lambda: _compressed(b'{"event_id":"a"},', 256 * MIB)),
    "many-lists": (
        "lists.json.zst",
        lambda: _compressed(b'{"experiment_ids":[' + b'"ab",' * 9_999 + b'"ab"]}\n', 24 * MIB),
    ),
    "parquet-text": ("text.parquet", lambda: parquet_of({"event_id": one_text(8_000, 300_000)})),
    # More than an array of Arrow's can have.
    "parquet-2-gib": ("text.parquet", lambda: parquet_of({"event_id": one_text(2_000, 2_000_000)})),
    "parquet-struct": (
        "struct.parquet",
        lambda: parquet_of({"event_params": pa.StructArray.from_arrays([one_text(8_000, 300_000)], ["platform"])}),
    ),
    "parquet-list": ("list.parquet", lambda: parquet_of({"experiment_ids": _one_list(20_000_000)})),
    "parquet-rows": ("rows.parquet", lambda: parquet_of({"event_id": one_text(1_000_000, 300)})),
}


def read(name: str, content: bytes) -> float:
    """Return by how many MiB the highest resident memory rose while a file was read."""
    limits = FileLimits()
    reader = FileReader(MESSAGE, SCHEMA_ID)
    for _ in reader.read([StoredFile(0, "a.json", memoryview(line()), limits.decompressed_bytes)]):
        pass
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in reader.read([StoredFile(0, name, memoryview(content), limits.decompressed_bytes)]):
        pass
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


if __name__ == "__main__":
    print(read(sys.argv[1], sys.stdin.buffer.read()))  # noqa: T201 # the result
