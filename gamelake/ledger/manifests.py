"""Batch manifests: the decision about each record of a batch, made once, before any table is committed."""

from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from gamelake.delta.appends import BatchTransaction
from gamelake.delta.table_files import TableFiles
from gamelake.model.naming import QUARANTINE, SILVER_EVENTS, Horizon, game_of, game_table
from gamelake.objects.records import Encoding, Records
from gamelake.objects.store import Store

# Distances at which the search probes for a later batch. The greatest is a year of two-second batches.
_JUMPS = tuple(2**exponent for exponent in range(25))
# The number of names that are one page of a listing.
_NEAR = 512
# Prefix of a rule's name among a commit's operationMetrics: rows that broke the rule.
RULE_METRIC = "rule."


class OffsetRange(msgspec.Struct, frozen=True, kw_only=True):
    """The offsets of one Kafka partition that a batch read.

    Attributes:
        partition: the Kafka partition.
        first: the first offset.
        last: the last offset; it was read too.
        records: the number of records, which may be less than the number of offsets.
    """

    partition: int
    first: int
    last: int
    records: int


class EventsSection(msgspec.Struct, frozen=True, kw_only=True):
    """Events of one Kafka partition in a file.

    Attributes:
        partition: the Kafka partition.
        start: the offset of the first byte in the file.
        events: the number of events; see `gamelake.layers.known_events.Events` for their format.
        newest: the newest record timestamp, in seconds since 1970.
    """

    partition: int
    start: int
    events: int
    newest: int


class EventsFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file with the identities of the events that a batch wrote to silver, kept as long as the dedup window.

    Attributes:
        path: inside the store.
        sections: the events by Kafka partition, in the order of their bytes.
        replaces: paths of earlier files whose identities are all in this one.
        merged_at: when the file replaced them, in seconds since 1970; 0 if it replaces none.
    """

    path: str
    sections: tuple[EventsSection, ...]
    replaces: tuple[str, ...] = ()
    merged_at: int = 0


class StateFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of a batch to its stream's state.

    Attributes:
        moment: the stream's event time after the batch, in microseconds since 1970.
        shares: paths of the files with the changes, one for each task.
        carried: path of the file that the next batch starts from.
        changed: the number of players' states in the files.
    """

    moment: int
    shares: tuple[str, ...]
    carried: str
    changed: int


class RuleCount(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one quality rule for the rows of one game in a batch.

    Attributes:
        game: the game's name.
        rule: the rule's name.
        fingerprint: of the rule; a changed rule has another one.
        severity: of the rule, such as `warn`.
        broken: the number of rows that broke the rule.
        unjudged: the number of rows that lack the columns to evaluate the rule.
    """

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
        rows: the number of judged rows by game.
        counts: the rules that rows broke, or that could not be evaluated. A rule without an entry has zero of both.
        quarantined: the number of quarantined rows by the rule that decided it.
        dropped: the number of dropped rows by the rule that decided it.
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
        objects: the number of objects by outcome.
        passed_over: the number of notifications without an object to read, by reason.
        records: the number of records in the objects. An object that becomes one dead letter counts as one record.
        bytes: the stored size of the objects.
        unusable_schema: the id of the registry's newest schema if it can't be used, so that the objects were read with
            an older one; else 0.
    """

    objects: dict[str, int]
    passed_over: dict[str, int]
    records: int
    bytes: int
    unusable_schema: int = 0


class BatchManifest(msgspec.Struct, frozen=True, kw_only=True):
    """All decisions of a batch; a batch that runs again follows its manifest, whatever has changed since.

    Attributes:
        stream: the stream's name.
        query_id: the first part of `app_id`.
        generation: the number of the checkpoint generation, the second part of `app_id`.
        batch_id: the batch's id, which rises across generations.
        topic: the Kafka topic.
        topic_id: Kafka's id of the topic.
        written_at: ISO 8601, UTC.
        offsets: the offsets that the batch read.
        tables: the files that the batch adds to each table.
        dead_letters: the number of dead letters by reason.
        duplicates: the number of duplicates by game.
        events: the files with the identities of the events that the batch wrote to silver.
        state: the changes to the stream's state; None for a stream without a state.
        judged: the results of the quality rules.
        files: the objects of a batch of notifications; None for a stream of Kafka records.
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
    def transaction(self) -> BatchTransaction:
        """The Delta transaction with which each table commits the batch, once."""
        return BatchTransaction(self.app_id, self.batch_id, self.record_counts, self.broken, self.stream)

    @property
    def records(self) -> int:
        """The number of records that the batch read from Kafka, or from the files that notifications named."""
        return self.files.records if self.files else sum(taken.records for taken in self.offsets)

    @property
    def silver_rows(self) -> int:
        """The number of rows that the batch adds to the tables of all games together."""
        return sum(entry.rows for entry in self.tables if game_of(entry.table))

    @property
    def record_counts(self) -> dict[str, int]:
        """The number of records and of each of their outcomes, as metrics; batchRecords is the sum of the others."""
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
        """The number of rows that broke each rule, by table, as metrics of the table's commit."""
        found: dict[str, dict[str, int]] = {}
        for count in self.judged.counts:
            for table in (game_table(count.game), SILVER_EVENTS, QUARANTINE):
                of_table = found.setdefault(table, {})
                name = f"{RULE_METRIC}{count.rule}"
                of_table[name] = of_table.get(name, 0) + count.broken
        return found

    def rows_in(self, table: str) -> int:
        """Return the number of rows that the batch adds to a table."""
        return sum(entry.rows for entry in self.tables if entry.table == table)


class Manifests:
    """The manifests of one stream, by batch id; ids continue across checkpoint generations.

    Several processes may use the manifests of a stream: only one of them can decide a batch. An instance caches the
    newest batch, so `newest` is for one thread.

    Example:
        >>> manifests = Manifests(Store(location), "events")
        >>> manifests.newest() is None
        True
        >>> decided = BatchManifest(
        ...     stream="events", query_id="q", generation=0, batch_id=0, topic="events", topic_id="t",
        ...     written_at="2026-11-30T00:00:00Z", offsets=(), tables=(), dead_letters={},
        ... )
        >>> manifests.settle(decided) == manifests.settle(msgspec.structs.replace(decided, query_id="late")) == decided
        True
        >>> manifests.newest()
        0
    """

    def __init__(self, store: Store, stream: str) -> None:
        self._store = store
        self._stream = stream
        self._records = Records(store, f"_gamelake/streams/{stream}/manifests", BatchManifest, Encoding.ZSTD)
        # The newest batch that was found so far.
        self._newest = -1

    def settle(self, manifest: BatchManifest) -> BatchManifest:
        """Write a batch's manifest; if the batch has one already, return that one."""
        if self._records.add(_name(manifest.batch_id), manifest):
            return manifest
        standing = self.read(manifest.batch_id)
        assert standing is not None  # noqa: S101 # put_new has just found it, and only old manifests are deleted
        return standing

    def replace(self, manifest: BatchManifest) -> None:
        """Replace the manifest of a batch that a table can't accept; only `gamelake.recovery.stuck_decisions` may."""
        self._records.put(_name(manifest.batch_id), manifest)

    def read(self, batch_id: int) -> BatchManifest | None:
        """Read the manifest of a batch; return None if the batch was never decided, or its manifest was deleted."""
        return self._records.read(_name(batch_id))

    def stored_at(self, batch_id: int) -> datetime | None:
        """Return when the manifest of a batch was written, by the store's clock (UTC); None without a manifest."""
        return self._store.written_at(self._path(batch_id))

    def batches(self) -> list[int]:
        """List the ids of all decided batches, in order; a year of short batches takes hundreds of listing requests."""
        return self._listed(None)

    def after(self, batch_id: int) -> list[int]:
        """List the ids of the decided batches after another one, in order; an object store lists only these."""
        return [each for each in self._listed(self._path(batch_id)) if each > batch_id]

    def newest(self) -> int | None:
        """Return the id of the newest decided batch, None if there is none.

        On an object store this takes a few requests, whatever the number of manifests: some that find a late batch, and
        a listing of the manifests after it. Missing manifests in between only make that listing longer.
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
            # Compacted manifests were copied here, or the manifests after them were deleted by hand.
            found = self.batches()
        self._newest = found[-1] if found else known if is_there else -1
        return self._newest if self._newest >= 0 else None

    def _farthest(self, known: int) -> int:
        """Return the greatest of the `_JUMPS` at which a batch after another one has a manifest, 0 if there is none."""
        paths = {self._path(known + jump): jump for jump in _JUMPS}
        there = paths.keys() - self._store.missing([*paths])
        return max((paths[path] for path in there), default=0)

    def _compacted_through(self) -> int:
        """Return the last batch that log cleanup has compacted, whose manifest may be deleted; -1 if there is none."""
        paths = (path for horizon in Horizon for path in self._store.paths(f"{horizon}/streams/{self._stream}"))
        return max(map(_number_of, paths), default=-1)

    def _listed(self, after: str | None) -> list[int]:
        return sorted(_number_of(each.path) for each in self._store.objects(self._records.folder, after))

    def read_many(self, batches: Sequence[int]) -> Iterator[BatchManifest]:
        """Read the manifests of some batches ahead, in the order of `batches`; skip those that don't exist."""
        return self._records.read_many(map(_name, batches))

    def last(self, count: int) -> list[BatchManifest]:
        """Read the manifests among the newest `count` batch ids, oldest first; the newest batch is always included."""
        newest = self.newest()
        return [] if newest is None else list(self.read_many(range(max(newest - count + 1, 0), newest + 1)))

    def _path(self, batch_id: int) -> str:
        return self._records.path(_name(batch_id))


def _name(batch_id: int) -> str:
    # The name has no generation: if a stream has two drivers, only one can decide a batch.
    return f"{batch_id:012d}"


def _number_of(path: str) -> int:
    return int(path.rpartition("/")[2].partition(".")[0])
