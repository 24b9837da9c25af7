"""The books of a lakehouse: do manifests and Delta logs agree on what happened to every record?

Only manifests and transaction logs are read, never the data, so that the answer costs seconds on any size.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from gamelake.lake.generations import Generations
from gamelake.lake.log import LoggedFile, TableLog
from gamelake.lake.manifest import BatchManifest, Manifests, OffsetRange
from gamelake.lake.store import Store
from gamelake.naming import BRONZE_EVENTS, DEAD_LETTERS, SILVER_EVENTS, game_of


@dataclass(frozen=True, slots=True)
class TableBooks:
    """What one table holds, by its log: live files and their rows and bytes."""

    table: str
    rows: int
    files: int
    bytes: int


@dataclass(slots=True)
class Books:
    """The balance of a lakehouse; it adds up if there are no problems.

    `empty_offsets` held no record: markers and aborted records of Kafka transactions, or what compaction removed.
    `lost_offsets` were given up by a person when Kafka no longer had them.
    """

    batches: int = 0
    records: int = 0
    silver_rows: int = 0
    dead_letters: Counter[str] = field(default_factory=Counter)
    tables: list[TableBooks] = field(default_factory=list)
    empty_offsets: int = 0
    lost_offsets: int = 0
    problems: list[str] = field(default_factory=list)


def streams_of(store: Store) -> list[str]:
    """The streams that have written to a lakehouse."""
    return [folder.split("/")[-1] for folder in store.folders("_gamelake/streams/")]


def balance(store: Store) -> Books:
    """Check a whole lakehouse."""
    books = Books()
    promised: defaultdict[str, dict[str, tuple[str, int]]] = defaultdict(dict)
    offsets: defaultdict[tuple[str, str, int], list[OffsetRange]] = defaultdict(list)
    for stream in streams_of(store):
        manifests = Manifests(store, stream)
        for batch_id in manifests.batches():
            manifest = manifests.read(batch_id)
            if manifest is not None:
                _take(manifest, books, promised, offsets)
        for generation in Generations(store, stream).all():
            for given_up in generation.lost:
                books.lost_offsets += given_up.records
                offsets[generation.topic, generation.topic_id, given_up.partition].append(given_up)
    for (topic, _, partition), ranges in sorted(offsets.items()):
        books.problems += [f"{topic}[{partition}]: {problem}" for problem in offset_problems(ranges)]
    for table in _table_names(store, promised):
        log = TableLog.read(store, table)
        books.tables.append(TableBooks(table, log.live_rows, len(log.live), log.live_bytes))
        books.problems += [f"{table}: {problem}" for problem in file_problems(promised[table], log)]
    return books


def _take(
    manifest: BatchManifest,
    books: Books,
    promised: defaultdict[str, dict[str, tuple[str, int]]],
    offsets: defaultdict[tuple[str, str, int], list[OffsetRange]],
) -> None:
    books.batches += 1
    books.records += manifest.records
    books.silver_rows += sum(entry.rows for entry in manifest.tables if game_of(entry.table))
    books.dead_letters.update(manifest.dead_letters)
    books.problems += [f"batch {manifest.batch_id}: {problem}" for problem in batch_problems(manifest)]
    for taken in manifest.offsets:
        books.empty_offsets += taken.last - taken.first + 1 - taken.records
        offsets[manifest.topic, manifest.topic_id, taken.partition].append(taken)
    transaction = f"{manifest.app_id}/{manifest.batch_id}"
    for entry in manifest.tables:
        for file in entry.files:
            if file.path in promised[entry.table]:
                books.problems.append(f"{entry.table}: two manifests name the file {file.path}")
            promised[entry.table][file.path] = (transaction, file.rows)


def _table_names(store: Store, promised: Iterable[str]) -> list[str]:
    found = {folder for layer in ("bronze", "silver", "dead_letters") for folder in store.folders(f"{layer}/")}
    return sorted(found | set(promised))


def batch_problems(manifest: BatchManifest) -> Iterator[str]:
    """What does not add up inside one batch."""
    games = sum(entry.rows for entry in manifest.tables if game_of(entry.table))
    dead = sum(manifest.dead_letters.values())
    if manifest.records != games + dead:
        yield f"{manifest.records} records were read, {games} became rows and {dead} dead letters"
    for table, rows in ((BRONZE_EVENTS, manifest.records), (SILVER_EVENTS, games), (DEAD_LETTERS, dead)):
        if manifest.rows_in(table) != rows:
            yield f"{table} gets {manifest.rows_in(table)} rows instead of {rows}"


def offset_problems(ranges: list[OffsetRange]) -> Iterator[str]:
    """Offsets of one partition that were taken twice or not at all, between the first and the last one taken."""
    ordered = sorted(ranges, key=lambda taken: (taken.first, taken.last))
    for before, after in pairwise(ordered):
        if after.first <= before.last:
            yield f"offsets {after.first} to {min(before.last, after.last)} were taken twice"
        elif after.first > before.last + 1:
            yield f"offsets {before.last + 1} to {after.first - 1} were never taken"


def file_problems(promised: dict[str, tuple[str, int]], log: TableLog) -> Iterator[str]:
    """Where a table's log and the manifests differ: files that were not added once, under their batch's transaction."""
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
