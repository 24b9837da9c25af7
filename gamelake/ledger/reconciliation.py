"""Reconciliation of a lakehouse: check that manifests and Delta logs agree on the outcome of every record.

It reads manifests and transaction logs only, never the data, so it takes seconds at any size.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from gamelake.delta.appends import BatchTransaction
from gamelake.delta.log.history_checkpoints import LoggedFile
from gamelake.delta.log.table_log import TableLog
from gamelake.delta.table_files import TableFiles
from gamelake.ledger.generations import Generations
from gamelake.ledger.held_tables import HeldTable, HeldTables, held_tables
from gamelake.ledger.manifest_checkpoints import ManifestCheckpoint, read_newest_manifest_checkpoint
from gamelake.ledger.manifests import BatchManifest, Manifests, OffsetRange
from gamelake.ledger.replay_manifests import ReplayManifests
from gamelake.model.naming import BRONZE_EVENTS, DEAD_LETTERS, QUARANTINE, SILVER_EVENTS, state_folder
from gamelake.objects.store import Store

# Files by path: their transaction (`application/batch`) and their rows.
_Promised = dict[str, tuple[str, int]]


@dataclass(frozen=True, slots=True)
class TableReconciliation:
    """A table according to its log.

    Attributes:
        table: its path.
        rows: the number of rows in its live files.
        files: the number of its live files.
        bytes: the size of its live files.
        erased: the number of rows that erasures removed.
    """

    table: str
    rows: int
    files: int
    bytes: int
    erased: int = 0


@dataclass(slots=True)
class Reconciliation:
    """The sums over all batches and tables of a lakehouse, and every problem found.

    Attributes:
        batches: the number of batches.
        records: the number of records that the batches read.
        silver_rows: the number of rows that the batches added to the tables of all games.
        dead_letters: the number of dead letters by reason.
        duplicates: the number of duplicates by game.
        quarantined: the number of quarantined rows by the rule that decided it.
        dropped: the number of dropped rows by the rule that decided it.
        replayed: the number of dead letters that replays have settled since.
        released: the number of quarantined rows that replays have settled since.
        tables: those of bronze, silver, the dead letters and the quarantine, sorted by path.
        empty_offsets: the number of offsets without a record: markers and aborted records of Kafka transactions, or
            records that Kafka's compaction removed.
        lost_offsets: the number of offsets that an operator gave up because Kafka no longer had them.
        held: one sentence for each table and stream that holds it back, with the rows that wait.
        upgrades: one sentence for each table whose protocol another program has upgraded.
        problems: one sentence for each problem; empty if manifests and logs agree.
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
    """List the streams that write records to the layers; streams with a state only read the same records."""
    streams = [folder.split("/")[-1] for folder in store.folders("_gamelake/streams/")]
    return [each for each in streams if state_folder(each) not in store.folders(f"_gamelake/streams/{each}/")]


def reconcile(store: Store) -> Reconciliation:
    """Check all streams and tables of a lakehouse; it changes nothing.

    Streams may write meanwhile. A batch that is committed during the check may then look like a problem.

    Returns:
        The sums, and the problems as sentences. Problems are not raised.

    Raises:
        ValueError: a log entry is empty or damaged.
        msgspec.DecodeError: a manifest or a checkpoint is damaged.
    """
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
        found.problems += [f"{table}: {problem}" for problem in vector_problems(log)]
        found.upgrades += [f"{table}: {upgrade}" for upgrade in upgrades(log)]
    return found


def _waiting(
    held_back: Iterable[tuple[HeldTables, Mapping[str, HeldTable]]], table: str, promised: _Promised, log: TableLog
) -> Iterator[str]:
    """Yield a sentence with the rows that wait for a table which is held back; remove their files from `promised`."""
    added = {file.path for file in log.appended}
    for of_stream, records in held_back:
        if (held := records.get(table)) is None:
            continue
        paths = {file.path for waiting in of_stream.waiting(table) for file in waiting.entry.files} - added
        rows = sum(promised.pop(path)[1] for path in paths if path in promised)
        yield f"{rows} rows in {len(paths)} files wait since batch {held.since} of {held.stream}: {held.reason}"


def vector_problems(log: TableLog) -> Iterator[str]:
    """Yield a sentence if deletion vectors delete rows of a table; only other programs write deletion vectors."""
    if rows := log.vector_deleted_rows:
        yield (
            f"{rows} rows are deleted by deletion vectors, which another program has written; jobs/restore.py restores "
            "a version before"
        )


def upgrades(log: TableLog) -> Iterator[str]:
    """Yield a sentence if another program has upgraded a table's protocol."""
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
    """Add all batches of a stream to the sums: those of its manifest checkpoint, then those with a manifest.

    Returns:
        The manifest checkpoint, None if there is none.
    """
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
    _promise(manifest.tables, manifest.transaction, found, promised)


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
    """Yield a sentence for each count of a batch that does not agree with the others."""
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


def offset_problems(ranges: list[OffsetRange]) -> Iterator[str]:
    """Yield a sentence for each range of offsets that was read twice, or skipped between the first and the last one.

    Args:
        ranges: of one partition, in any order.
    """
    ordered = sorted(ranges, key=lambda taken: (taken.first, taken.last))
    for before, after in pairwise(ordered):
        if after.first <= before.last:
            yield f"offsets {after.first} to {min(before.last, after.last)} were read twice"
        elif after.first > before.last + 1:
            yield f"offsets {before.last + 1} to {after.first - 1} were never read"


def without_compacted(log: TableLog, compacted: Iterable[ManifestCheckpoint]) -> list[LoggedFile]:
    """Return a table's files with new data, without those of batches that a manifest checkpoint covers."""
    checkpoints = list(compacted)
    return [
        file
        for file in log.appended
        if file.version > log.compacted_through or not any(each.covers(file.transaction) for each in checkpoints)
    ]


def file_problems(promised: _Promised, log: TableLog) -> Iterator[str]:
    """Yield a sentence for each file that the log and the manifests disagree about.

    A file must be added exactly once, by the transaction of its manifest, and with the manifest's number of rows.

    Args:
        promised: the files of the manifests by path: their transaction (`application/batch`) and number of rows.
        log: of the table.
    """
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
