"""The manifest of a batch: what happened to each of its records, settled once, before any table is committed."""

from collections.abc import Iterator, Sequence

import msgspec
import pyarrow as pa

from gamelake.model.naming import QUARANTINE, SILVER_EVENTS, game_of, game_table
from gamelake.storage.data_files import DataFile
from gamelake.storage.store import Store


class OffsetRange(msgspec.Struct, frozen=True, kw_only=True):
    """The offsets of one Kafka partition that a batch took: first and last, and how many records between them."""

    partition: int
    first: int
    last: int
    records: int


class TableFiles(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch adds to one table; `schema` is the table's Delta schema as JSON once they are in.

    `schema_ids` are those of the Protobuf schemas that the rows came in, as far as they were decoded.
    """

    table: str
    partition_by: tuple[str, ...]
    schema: str
    files: tuple[DataFile, ...]
    schema_ids: tuple[int, ...] = ()

    @property
    def rows(self) -> int:
        """Rows that the batch adds to the table."""
        return sum(file.rows for file in self.files)


class EventsSection(msgspec.Struct, frozen=True, kw_only=True):
    """Events of one Kafka partition in a file: from which byte on, how many, and when Kafka took the newest one in."""

    partition: int
    start: int
    events: int
    newest: int


class EventsFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that tells which events a batch took into silver, for as long as the dedup window remembers them."""

    path: str
    sections: tuple[EventsSection, ...]


class StateFiles(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch has changed of the state that its stream keeps.

    `moment` is how far the stream's own time has come (microseconds since 1970), `shares` are the files of what has
    changed, `carried` is the file of what the next batch goes on from.
    """

    moment: int
    shares: tuple[str, ...]
    carried: str


# How a commit's metadata names the rows that broke a rule.
RULE_METRIC = "rule."


class RuleCount(msgspec.Struct, frozen=True, kw_only=True):
    """Of one game the rows that broke a rule, and those that the rule could not judge by the columns that they had."""

    game: str
    rule: str
    fingerprint: str
    severity: str
    broken: int
    unjudged: int = 0


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """What the rules came to.

    Attributes:
        rules: the fingerprint of the set that was in force; empty if there was none.
        rows: the rows that were judged, by game.
        counts: the rules that rows broke, or that could not judge them; of all others both are none.
        quarantined: rows that were, by the rule that settled it.
        dropped: likewise.
        refused: why the files of the rules are not what was in force; empty if they were.
    """

    rules: str = ""
    rows: dict[str, int] = {}
    counts: tuple[RuleCount, ...] = ()
    quarantined: dict[str, int] = {}
    dropped: dict[str, int] = {}
    refused: str = ""


class FilesTaken(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch of notifications came to.

    Attributes:
        objects: those that were looked at, by what became of them.
        passed_over: notifications that led to no object to read, by why.
        records: what stood in the objects; a dead letter that stands for an object is one.
        bytes: of the objects, as they are stored.
    """

    objects: dict[str, int]
    passed_over: dict[str, int]
    records: int
    bytes: int


class BatchManifest(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a batch decided. A batch that runs again follows its manifest, whatever has changed since.

    `dead_letters` are counted by reason, `duplicates` by game; `judged` is what the rules came to.
    """

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
    duplicates: dict[str, int] = {}
    events: tuple[EventsFile, ...] = ()
    state: StateFiles | None = None
    judged: Judged = Judged()
    files: FilesTaken | None = None

    @property
    def app_id(self) -> str:
        """The transaction id's application part: a new checkpoint generation is a new application."""
        return f"{self.query_id}-{self.generation}"

    @property
    def records(self) -> int:
        """Records that the batch read: Kafka's, or those of the files that Kafka's named."""
        return self.files.records if self.files else sum(taken.records for taken in self.offsets)

    @property
    def silver_rows(self) -> int:
        """Rows that the batch adds to the tables of all games together."""
        return sum(entry.rows for entry in self.tables if game_of(entry.table))

    @property
    def balance(self) -> dict[str, int]:
        """What became of the batch's records: they are the sum of the others."""
        return {
            "batchRecords": self.records,
            "batchSilverRows": self.silver_rows,
            "batchDeadLetters": sum(self.dead_letters.values()),
            "batchDuplicates": sum(self.duplicates.values()),
            "batchQuarantined": sum(self.judged.quarantined.values()),
            "batchDropped": sum(self.judged.dropped.values()),
        }

    @property
    def broken(self) -> dict[str, dict[str, int]]:
        """By table the rows that broke rules, as its history tells them: a game's own, or those of all games."""
        found: dict[str, dict[str, int]] = {}
        for count in self.judged.counts:
            for table in (game_table(count.game), SILVER_EVENTS, QUARANTINE):
                of_table = found.setdefault(table, {})
                name = f"{RULE_METRIC}{count.rule}"
                of_table[name] = of_table.get(name, 0) + count.broken
        return found

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

    def those(self, batches: Sequence[int]) -> Iterator[BatchManifest]:
        """The manifests of some batches in their order, without those that are not there."""
        for packed in self._store.get_all([_path(self._stream, batch_id) for batch_id in batches]):
            if packed is not None:
                yield _unpack(packed)

    def last(self, count: int) -> list[BatchManifest]:
        """The newest manifests, at most `count`, oldest first."""
        return list(self.those(self.batches()[-count:]))


def _path(stream: str, batch_id: int) -> str:
    # Not by generation: of two drivers that take themselves for the stream's, only one can decide a batch.
    return f"_gamelake/streams/{stream}/manifests/{batch_id:012d}.json.zst"


def _pack(manifest: BatchManifest) -> bytes:
    return bytes(pa.compress(msgspec.json.encode(manifest), "zstd", asbytes=True))


def _unpack(packed: bytes) -> BatchManifest:
    content = pa.CompressedInputStream(pa.BufferReader(packed), "zstd").read()
    return msgspec.json.decode(content, type=BatchManifest)
