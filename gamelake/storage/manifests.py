"""Batch manifests: what a batch does with each of its records, decided once, before any table is committed."""

from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec
import pyarrow as pa

from gamelake.model.naming import QUARANTINE, SILVER_EVENTS, Horizon, game_of, game_table
from gamelake.storage.data_files import DataFile
from gamelake.storage.store import Store

# Distances at which a later batch is looked for: the greatest is a year of batches of two seconds.
_JUMPS = tuple(2**exponent for exponent in range(25))
# So many names are one page of a listing.
_NEAR = 512
# Prefix of a rule's name among a commit's operationMetrics: rows that broke the rule.
RULE_METRIC = "rule."


class OffsetRange(msgspec.Struct, frozen=True, kw_only=True):
    """The offsets of one Kafka partition that a batch read: the first, the last, and the number of records."""

    partition: int
    first: int
    last: int
    records: int


class TableFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files that a batch adds to one table.

    Attributes:
        schema: the table's Delta schema as JSON, with the columns that the files add.
        schema_ids: of the Protobuf schemas that the rows were decoded by.
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
    """Events of one Kafka partition in a file.

    Attributes:
        start: the first byte.
        events: their number; see `gamelake.layers.known_events.Events` for their format.
        newest: the newest record timestamp, in seconds since 1970.
    """

    partition: int
    start: int
    events: int
    newest: int


class EventsFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file with the identities of the events that a batch wrote to silver, kept as long as the dedup window."""

    path: str
    sections: tuple[EventsSection, ...]


class StateFiles(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch has changed of its stream's state.

    Attributes:
        moment: the stream's event time after the batch (microseconds since 1970).
        shares: files of the changes, one for each task.
        carried: the file that the next batch starts from.
        changed: how many players' states are in the files; older manifests have none.
    """

    moment: int
    shares: tuple[str, ...]
    carried: str
    changed: int = 0


class RuleCount(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of one game that broke a rule, and those that the rule could not be evaluated for, as columns lacked."""

    game: str
    rule: str
    fingerprint: str
    severity: str
    broken: int
    unjudged: int = 0


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a batch's quality rules.

    Attributes:
        rules: the fingerprint of the rule set in force; empty if there was none.
        rows: the rows that were judged, by game.
        counts: the rules that rows broke, or that could not be evaluated; all other counts are zero.
        quarantined: rows in quarantine, by the rule that decided it.
        dropped: rows dropped, by the rule that decided it.
        refused: why the newest rule files were refused; empty if they are in force.
    """

    rules: str = ""
    rows: dict[str, int] = {}
    counts: tuple[RuleCount, ...] = ()
    quarantined: dict[str, int] = {}
    dropped: dict[str, int] = {}
    refused: str = ""


class FilesTaken(msgspec.Struct, frozen=True, kw_only=True):
    """The objects and records of a batch of notifications.

    Attributes:
        objects: the objects by outcome.
        passed_over: notifications without an object to read, by reason.
        records: in the objects; the dead letter of a whole object counts as one.
        bytes: of the objects, as they are stored.
    """

    objects: dict[str, int]
    passed_over: dict[str, int]
    records: int
    bytes: int


class BatchManifest(msgspec.Struct, frozen=True, kw_only=True):
    """All decisions of a batch; a batch that runs again follows its manifest, whatever has changed since.

    Attributes:
        written_at: ISO 8601, UTC.
        dead_letters: by reason.
        duplicates: by game.
        judged: the results of the quality rules.
        files: None for a stream of Kafka records.
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
        """The application id of the batch's Delta transactions: one for each checkpoint generation."""
        return f"{self.query_id}-{self.generation}"

    @property
    def records(self) -> int:
        """Records that the batch read: from Kafka, or from the files that notifications named."""
        return self.files.records if self.files else sum(taken.records for taken in self.offsets)

    @property
    def silver_rows(self) -> int:
        """Rows that the batch adds to the tables of all games together."""
        return sum(entry.rows for entry in self.tables if game_of(entry.table))

    @property
    def record_counts(self) -> dict[str, int]:
        """What became of the batch's records; batchRecords is the sum of the others."""
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
        """Rows that broke rules, by table, as metrics of its commits."""
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
        # No later batch was found so far.
        self._newest = -1

    def settle(self, manifest: BatchManifest) -> BatchManifest:
        """Write a batch's manifest; if the batch has one already, return that one."""
        if self._store.put_new(_path(self._stream, manifest.batch_id), _encode(manifest)):
            return manifest
        standing = self.read(manifest.batch_id)
        assert standing is not None  # noqa: S101 # put_new has just found it, and only old manifests are deleted
        return standing

    def replace(self, manifest: BatchManifest) -> None:
        """Replace the manifest of a batch that a table can't take; only `gamelake.recovery.stuck_decisions` may."""
        self._store.put(_path(self._stream, manifest.batch_id), _encode(manifest))

    def read(self, batch_id: int) -> BatchManifest | None:
        """The manifest of a batch, None if the batch was never decided."""
        content = self._store.get(_path(self._stream, batch_id))
        return None if content is None else _decode(content)

    def stored_at(self, batch_id: int) -> datetime | None:
        """When the manifest of a batch was written, by the store's clock and not its driver's; None without one."""
        return self._store.written_at(_path(self._stream, batch_id))

    def batches(self) -> list[int]:
        """The ids of all decided batches, in order; for a year of short batches that are hundreds of listings."""
        return self._listed(None)

    def after(self, batch_id: int) -> list[int]:
        """The ids of the decided batches after one, in order; on an object store only these are listed."""
        return [each for each in self._listed(_path(self._stream, batch_id)) if each > batch_id]

    def newest(self) -> int | None:
        """The id of the newest decided batch, None if there is none.

        On an object store it takes a few requests, whatever the number of manifests: some that find a late batch, and a
        listing of what follows it. Batches without a manifest in between would make that listing longer, no more.
        """
        known, is_there = self._newest, self._newest >= 0
        if not is_there:
            known = self._compacted_through()
            while jump := self._farthest(known):
                known, is_there = known + jump, True
                if jump <= _NEAR:
                    break
        found = self.after(known)
        if not found and not is_there:
            # Manifests that log cleanup has compacted were copied here, or those after them were deleted by hand.
            found = self.batches()
        self._newest = found[-1] if found else known if is_there else -1
        return self._newest if self._newest >= 0 else None

    def _farthest(self, known: int) -> int:
        """The greatest of some distances at which a batch after another one has a manifest, 0 if none has."""
        paths = {_path(self._stream, known + jump): jump for jump in _JUMPS}
        there = paths.keys() - self._store.missing([*paths])
        return max((paths[path] for path in there), default=0)

    def _compacted_through(self) -> int:
        """The last batch that log cleanup has compacted, and whose manifest may be deleted; -1 if there is none."""
        paths = (path for horizon in Horizon for path in self._store.paths(f"{horizon}/streams/{self._stream}"))
        return max((_number_of(path) for path in paths), default=-1)

    def _listed(self, after: str | None) -> list[int]:
        listed = self._store.objects(f"_gamelake/streams/{self._stream}/manifests", after)
        return sorted(_number_of(each.path) for each in listed)

    def read_many(self, batches: Sequence[int]) -> Iterator[BatchManifest]:
        """The manifests of some batches in their order, without those that don't exist."""
        for content in self._store.get_all(_path(self._stream, batch_id) for batch_id in batches):
            if content is not None:
                yield _decode(content)

    def last(self, count: int) -> list[BatchManifest]:
        """Those of the newest `count` batch ids that have manifests, oldest first; the newest batch is among them."""
        newest = self.newest()
        return [] if newest is None else list(self.read_many(range(max(newest - count + 1, 0), newest + 1)))


def _number_of(path: str) -> int:
    return int(path.rpartition("/")[2].partition(".")[0])


def _path(stream: str, batch_id: int) -> str:
    # Not by generation: of two drivers of a stream, only one can decide a batch.
    return f"_gamelake/streams/{stream}/manifests/{batch_id:012d}.json.zst"


def _encode(manifest: BatchManifest) -> bytes:
    return bytes(pa.compress(msgspec.json.encode(manifest), "zstd", asbytes=True))


def _decode(content: bytes) -> BatchManifest:
    content = pa.CompressedInputStream(pa.BufferReader(content), "zstd").read()
    return msgspec.json.decode(content, type=BatchManifest)
