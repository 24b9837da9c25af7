"""Reconciliation of a lakehouse: do manifests and Delta logs agree on what happened to every record?

Only manifests and transaction logs are read, never the data: it takes seconds at any size.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from gamelake.model.naming import BRONZE_EVENTS, DEAD_LETTERS, QUARANTINE, SILVER_EVENTS, state_folder
from gamelake.storage.appends import BatchTransaction
from gamelake.storage.generations import Generations
from gamelake.storage.held_tables import HeldTable, HeldTables, held_tables
from gamelake.storage.manifest_checkpoints import LoggedFile, ManifestCheckpoint, read_newest_manifest_checkpoint
from gamelake.storage.manifests import BatchManifest, Manifests, OffsetRange, TableFiles
from gamelake.storage.misread_files import may_be_misread, misread_files
from gamelake.storage.readable_schemas import unreadable_columns, unreadable_schema
from gamelake.storage.replay_manifests import ReplayManifests
from gamelake.storage.store import Store
from gamelake.storage.table_log import TableLog
from gamelake.storage.tables import open_table

# Files by path: their transaction (`application/batch`) and their rows.
_Promised = dict[str, tuple[str, int]]


@dataclass(frozen=True, slots=True)
class TableReconciliation:
    """A table by its log: live files with their rows and bytes, and the rows that erasures removed."""

    table: str
    rows: int
    files: int
    bytes: int
    erased: int = 0


@dataclass(slots=True)
class Reconciliation:
    """The sums over all batches and tables of a lakehouse, and every problem found.

    Attributes:
        dead_letters: by reason.
        duplicates: by game.
        quarantined: by the rule that decided it.
        dropped: by the rule that decided it.
        replayed: dead letters that a replay has settled since.
        released: quarantined rows that a replay has settled since.
        empty_offsets: offsets without a record: markers and aborted records of Kafka transactions, or records that
            Kafka's compaction removed.
        lost_offsets: given up by an operator when Kafka no longer had them.
        held: one sentence for each table that is held back, with the rows that wait.
        upgrades: one sentence for each table whose protocol another program has upgraded.
        problems: one sentence each; none if manifests and logs agree.
    """

    batches: int = 0
    records: int = 0
    silver_rows: int = 0
    dead_letters: Counter[str] = field(default_factory=Counter)
    duplicates: Counter[str] = field(default_factory=Counter)
    quarantined: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    replayed: int = 0
    released: int = 0
    tables: list[TableReconciliation] = field(default_factory=list)
    empty_offsets: int = 0
    lost_offsets: int = 0
    held: list[str] = field(default_factory=list)
    upgrades: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def streams_of(store: Store) -> list[str]:
    """The streams that write records to the layers; streams with a state only read the same records."""
    streams = [folder.split("/")[-1] for folder in store.folders("_gamelake/streams/")]
    return [each for each in streams if state_folder(each) not in store.folders(f"_gamelake/streams/{each}/")]


def reconcile(store: Store) -> Reconciliation:
    """Check a whole lakehouse."""
    found = Reconciliation()
    promised: defaultdict[str, _Promised] = defaultdict(dict)
    offsets: defaultdict[tuple[str, str, int], list[OffsetRange]] = defaultdict(list)
    compacted = [
        checkpoint
        for stream in streams_of(store)
        if (checkpoint := _take_stream(store, stream, found, promised, offsets)) is not None
    ]
    for replay in ReplayManifests(store).all():
        found.replayed += 0 if replay.source == QUARANTINE else replay.settled
        found.released += replay.settled if replay.source == QUARANTINE else 0
        _promise(replay.tables, replay.transaction, found, promised)
    for (topic, _, partition), ranges in sorted(offsets.items()):
        found.problems += [f"{topic}[{partition}]: {problem}" for problem in offset_problems(ranges)]
    held_back = list(held_tables(store))
    for table in _table_names(store, promised):
        log = TableLog.read(store, table)
        log.appended = without_compacted(log, compacted)
        found.held += [f"{table}: {held}" for held in _waiting(held_back, table, promised[table], log)]
        found.tables.append(TableReconciliation(table, log.live_rows, len(log.live), log.live_bytes, log.erased_rows))
        found.problems += [f"{table}: {problem}" for problem in file_problems(promised[table], log)]
        unreadable = list(schema_problems(log))
        others = unreadable or bounds_problems(store, table, log)  # which opens the table
        found.problems += [f"{table}: {problem}" for problem in others]
        found.problems += [f"{table}: {problem}" for problem in vector_problems(log)]
        found.upgrades += [f"{table}: {upgrade}" for upgrade in upgrades(log)]
    return found


def _waiting(
    held_back: Iterable[tuple[HeldTables, Mapping[str, HeldTable]]], table: str, promised: _Promised, log: TableLog
) -> Iterator[str]:
    """The rows that wait for a table which is held back, in a sentence; they are taken out of what is promised."""
    added = {file.path for file in log.appended}
    for of_stream, records in held_back:
        if (held := records.get(table)) is None:
            continue
        paths = {file.path for waiting in of_stream.waiting(table) for file in waiting.entry.files} - added
        rows = sum(promised.pop(path)[1] for path in paths if path in promised)
        yield f"{rows} rows in {len(paths)} files wait since batch {held.since} of {held.stream}: {held.reason}"


def bounds_problems(store: Store, table: str, log: TableLog) -> Iterator[str]:
    """Whether delta-rs reads bounds or partition values of a table as other texts."""
    if may_be_misread(log.adds) and (misread := misread_files(open_table(store.location, table), log.adds)):
        yield (
            f"{len(misread)} files have bounds or partition values that delta-rs, DuckDB and Polars misread, so "
            f"that filters skip rows; run jobs/repair_log.py {table}"
        )


def vector_problems(log: TableLog) -> Iterator[str]:
    """Rows of a table that deletion vectors delete, which no erasure and no other program of the platform does."""
    if rows := log.vector_deleted_rows:
        yield (
            f"{rows} rows are deleted by deletion vectors, which another program has written; jobs/restore.py restores "
            "a version before"
        )


def upgrades(log: TableLog) -> Iterator[str]:
    """The protocol of a table that is not the one it was made with, in a sentence."""
    if log.upgrade is not None:
        version, protocol = log.upgrade
        features = sorted({*(protocol.get("readerFeatures") or ()), *(protocol.get("writerFeatures") or ())})
        listed = f" with {', '.join(features)}" if features else ""
        yield (
            f"version {version} set reader version {protocol['minReaderVersion']} and writer version "
            f"{protocol['minWriterVersion']}{listed}"
        )


def _take_stream(
    store: Store,
    stream: str,
    found: Reconciliation,
    promised: defaultdict[str, _Promised],
    offsets: defaultdict[tuple[str, str, int], list[OffsetRange]],
) -> ManifestCheckpoint | None:
    """Add all batches of a stream: those of its manifest checkpoint, which is returned, then those with a manifest."""
    manifests, checkpoint = Manifests(store, stream), read_newest_manifest_checkpoint(store, stream)
    if checkpoint is not None:
        _take_checkpoint(checkpoint, found, offsets)
    compacted = -1 if checkpoint is None else checkpoint.through
    for manifest in manifests.read_many(manifests.after(compacted)):
        _take(manifest, found, promised, offsets)
    for generation in Generations(store, stream).all():
        for given_up in generation.lost:
            found.lost_offsets += given_up.records
            offsets[generation.topic, generation.topic_id, given_up.partition].append(given_up)
    return checkpoint


def _take_checkpoint(
    checkpoint: ManifestCheckpoint, found: Reconciliation, offsets: defaultdict[tuple[str, str, int], list[OffsetRange]]
) -> None:
    found.batches += checkpoint.batches
    found.records += checkpoint.records
    found.silver_rows += checkpoint.silver_rows
    found.dead_letters.update(checkpoint.dead_letters)
    found.duplicates.update(checkpoint.duplicates)
    found.quarantined.update(checkpoint.quarantined)
    found.dropped.update(checkpoint.dropped)
    for each in checkpoint.offsets:
        found.empty_offsets += each.taken.last - each.taken.first + 1 - each.taken.records
        offsets[each.topic, each.topic_id, each.taken.partition].append(each.taken)


def _take(
    manifest: BatchManifest,
    found: Reconciliation,
    promised: defaultdict[str, _Promised],
    offsets: defaultdict[tuple[str, str, int], list[OffsetRange]],
) -> None:
    found.batches += 1
    found.records += manifest.records
    found.silver_rows += manifest.silver_rows
    found.dead_letters.update(manifest.dead_letters)
    found.duplicates.update(manifest.duplicates)
    found.quarantined.update(manifest.judged.quarantined)
    found.dropped.update(manifest.judged.dropped)
    found.problems += [
        f"batch {manifest.batch_id} of {manifest.stream}: {problem}" for problem in batch_problems(manifest)
    ]
    for taken in manifest.offsets:
        found.empty_offsets += taken.last - taken.first + 1 - taken.records
        offsets[manifest.topic, manifest.topic_id, taken.partition].append(taken)
    _promise(manifest.tables, BatchTransaction.of(manifest), found, promised)


def _promise(
    tables: Iterable[TableFiles],
    transaction: BatchTransaction,
    found: Reconciliation,
    promised: Mapping[str, _Promised],
) -> None:
    """Add the files that the tables must have, with their transactions."""
    for entry in tables:
        for file in entry.files:
            if file.path in promised[entry.table]:
                found.problems.append(f"{entry.table}: two manifests name the file {file.path}")
            promised[entry.table][file.path] = (f"{transaction.app_id}/{transaction.version}", file.rows)


def _table_names(store: Store, promised: Iterable[str]) -> list[str]:
    layers = ("bronze", "silver", "dead_letters", "quarantine")
    found = {folder for layer in layers for folder in store.folders(f"{layer}/")}
    return sorted(found | set(promised))


def batch_problems(manifest: BatchManifest) -> Iterator[str]:
    """Counts of one batch that don't agree."""
    games, dead, again = manifest.silver_rows, sum(manifest.dead_letters.values()), sum(manifest.duplicates.values())
    quarantined, dropped = sum(manifest.judged.quarantined.values()), sum(manifest.judged.dropped.values())
    if manifest.records != games + dead + again + quarantined + dropped:
        yield (
            f"{manifest.records} records were read, {games} became rows and {dead} dead letters, "
            f"{again} were duplicates, {quarantined} quarantined and {dropped} dropped"
        )
    promised = {
        BRONZE_EVENTS: manifest.records,
        SILVER_EVENTS: games,
        DEAD_LETTERS: dead,
        QUARANTINE: quarantined,
    }
    for table, rows in promised.items():
        if manifest.rows_in(table) != rows:
            yield f"{table} gets {manifest.rows_in(table)} rows instead of {rows}"


def schema_problems(log: TableLog) -> Iterator[str]:
    """Why no program can open the table by its newest columns."""
    if log.schema and unreadable_schema(log.schema) is not None:
        yield (
            f"the columns {', '.join(unreadable_columns(log.schema))} are nested too deeply, so the table can't be "
            "opened: stop the streams and run jobs/repair_log.py for it"
        )


def offset_problems(ranges: list[OffsetRange]) -> Iterator[str]:
    """Offsets of one partition that were read twice or not at all, between the first and the last one read."""
    ordered = sorted(ranges, key=lambda taken: (taken.first, taken.last))
    for before, after in pairwise(ordered):
        if after.first <= before.last:
            yield f"offsets {after.first} to {min(before.last, after.last)} were taken twice"
        elif after.first > before.last + 1:
            yield f"offsets {before.last + 1} to {after.first - 1} were never taken"


def without_compacted(log: TableLog, compacted: Iterable[ManifestCheckpoint]) -> list[LoggedFile]:
    """The files with new data of a table, without those of batches that a checkpoint has found in it already."""
    checkpoints = list(compacted)
    return [
        file
        for file in log.appended
        if file.version > log.compacted_through or not any(each.covers(file.transaction) for each in checkpoints)
    ]


def file_problems(promised: _Promised, log: TableLog) -> Iterator[str]:
    """Differences between a table's log and the manifests: files not added once, or not by their transaction."""
    added: defaultdict[str, list[LoggedFile]] = defaultdict(list)
    for file in log.appended:
        added[file.path].append(file)
    for path, (transaction, rows) in promised.items():
        times = added.pop(path, [])
        if len(times) != 1:
            yield f"{path} of batch {transaction} was added {len(times)} times"
        elif (times[0].transaction, times[0].rows) != (transaction, rows):
            found = times[0]
            yield f"{path} was added by {found.transaction} with {found.rows} rows, not by {transaction} with {rows}"
    for path, times in added.items():
        yield f"{path}, added in version {times[0].version}, is in no manifest"
