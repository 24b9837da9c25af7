"""The manifest of a batch: what happened to each of its records, settled once, before any table is committed."""

import msgspec
import pyarrow as pa

from gamelake.lake.datafile import DataFile
from gamelake.lake.store import Store


class OffsetRange(msgspec.Struct, frozen=True, kw_only=True):
    """The offsets of one Kafka partition that a batch took: first and last, and how many records between them."""

    partition: int
    first: int
    last: int
    records: int


class TableFiles(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch adds to one table; `schema` is the table's Delta schema as JSON once they are in."""

    table: str
    partition_by: tuple[str, ...]
    schema: str
    files: tuple[DataFile, ...]

    @property
    def rows(self) -> int:
        """Rows that the batch adds to the table."""
        return sum(file.rows for file in self.files)


class BatchManifest(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a batch decided. A batch that runs again follows its manifest, whatever has changed since."""

    stream: str
    query_id: str
    generation: int
    batch_id: int
    topic: str
    topic_id: str
    written_at: str
    offsets: tuple[OffsetRange, ...]
    tables: tuple[TableFiles, ...]
    dead_letters: dict[str, int]

    @property
    def app_id(self) -> str:
        """The transaction id's application part: a new checkpoint generation is a new application."""
        return f"{self.query_id}-{self.generation}"

    @property
    def records(self) -> int:
        """Kafka records that the batch read."""
        return sum(offset_range.records for offset_range in self.offsets)

    def rows_in(self, table: str) -> int:
        """Rows that the batch adds to a table."""
        return sum(entry.rows for entry in self.tables if entry.table == table)


class Manifests:
    """The manifests of one stream, by batch id; ids go on across checkpoint generations."""

    def __init__(self, store: Store, stream: str) -> None:
        self._store = store
        self._stream = stream

    def settle(self, manifest: BatchManifest) -> BatchManifest:
        """Write a batch's manifest; if the batch has one already, that one stands and is returned."""
        if self._store.put_new(_path(self._stream, manifest.batch_id), _pack(manifest)):
            return manifest
        standing = self.read(manifest.batch_id)
        assert standing is not None  # noqa: S101 # put_new has just found it, and nothing removes manifests
        return standing

    def read(self, batch_id: int) -> BatchManifest | None:
        """The manifest of a batch, None if the batch was never decided."""
        packed = self._store.get(_path(self._stream, batch_id))
        return None if packed is None else _unpack(packed)

    def batches(self) -> list[int]:
        """The ids of all decided batches, in order."""
        paths = self._store.paths(f"_gamelake/streams/{self._stream}/manifests")
        return [int(path.split("/")[-1].split(".")[0]) for path in paths]

    def last(self, count: int) -> list[BatchManifest]:
        """The newest manifests, at most `count`, oldest first."""
        found = [self.read(batch_id) for batch_id in self.batches()[-count:]]
        return [manifest for manifest in found if manifest is not None]


def _path(stream: str, batch_id: int) -> str:
    # Not by generation: of two drivers that take themselves for the stream's, only one can decide a batch.
    return f"_gamelake/streams/{stream}/manifests/{batch_id:012d}.json.zst"


def _pack(manifest: BatchManifest) -> bytes:
    return bytes(pa.compress(msgspec.json.encode(manifest), "zstd", asbytes=True))


def _unpack(packed: bytes) -> BatchManifest:
    content = pa.CompressedInputStream(pa.BufferReader(packed), "zstd").read()
    return msgspec.json.decode(content, type=BatchManifest)
