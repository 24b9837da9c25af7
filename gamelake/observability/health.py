"""Is each table readable, is its log without holes, and are the files there that its newest version names?

No data is read: the log is replayed, and the table's folder listed.
Source: Delta Transaction Log Protocol, headings "Delta Log Entries" and "Checkpoints".
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise

import msgspec
from deltalake.exceptions import DeltaError

from gamelake.delta.listing import stream_names
from gamelake.delta.log.codec import DELETION_VECTORS, LOG_FOLDER, decode_entry, entry_path, live_paths
from gamelake.delta.log.table_features import TableDemands, TableUse
from gamelake.delta.log.table_log import TableLog
from gamelake.delta.tables import open_table
from gamelake.ledger.held_tables import held_tables
from gamelake.ledger.manifests import Manifests
from gamelake.model.clocks import TOLERATED_SKEW
from gamelake.model.errors import GamelakeError
from gamelake.model.naming import MAINTENANCE_FOLDER
from gamelake.objects.store import Store, StoredObject


class HealthVerdict(StrEnum):
    """The verdict on a need; also the first word of its line."""

    PASS = "PASS"  # noqa: S105 # no password
    WARN = "WARN"
    FAIL = "FAIL"


class HealthFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One need, the finding about it, and the remedy (empty if it needs none)."""

    verdict: HealthVerdict
    need: str
    found: str
    remedy: str = ""

    def __str__(self) -> str:
        """The line that a person reads."""
        return f"{self.verdict} {self.need}: {self.found}{'; ' if self.remedy else ''}{self.remedy}"


def passed(need: str, found: str) -> HealthFinding:
    """Return the finding that a need is met."""
    return HealthFinding(verdict=HealthVerdict.PASS, need=need, found=found)


def warned(need: str, found: str, remedy: str) -> HealthFinding:
    """Return the finding that a need is met narrowly, or that nothing is known about it."""
    return HealthFinding(verdict=HealthVerdict.WARN, need=need, found=found, remedy=remedy)


def failed(need: str, found: str, remedy: str) -> HealthFinding:
    """Return the finding that a need is not met."""
    return HealthFinding(verdict=HealthVerdict.FAIL, need=need, found=found, remedy=remedy)


def any_failed(findings: Iterable[HealthFinding]) -> bool:
    """Return True if one of them is more than a warning."""
    return any(finding.verdict is HealthVerdict.FAIL for finding in findings)


_LEASES = "leases"
_FOLDERS = ("_gamelake/leases", f"{MAINTENANCE_FOLDER}/lease")
# Five times what a holder may be kept from giving a sign.
_SILENT = timedelta(minutes=1)


def examine_leases(store: Store, now: datetime) -> list[HealthFinding]:
    """Return one line for all healthy leases, and one for each holder that was killed or hangs."""
    held = silent = 0
    findings = []
    for folder, newest in _newest_claims(store).items():
        kinds = {each.path.rsplit(".", 1)[-1] for each in newest}
        if "end" in kinds:
            continue
        held += 1
        age = now - max(each.written_at for each in newest)
        if age > _SILENT:
            silent += 1
            remedy = "nothing to do: the next process that needs it takes it over"
            message = f"{folder.removeprefix('_gamelake/')} is held, and its holder has not renewed it for {age}"
            findings.append(warned(_LEASES, message.partition(".")[0], remedy))
    return [passed(_LEASES, f"{held - silent} are held, and their holders are alive"), *findings]


def _newest_claims(store: Store) -> dict[str, list[StoredObject]]:
    """What there is of the newest claim of each lease."""
    claims: defaultdict[str, defaultdict[str, list[StoredObject]]] = defaultdict(lambda: defaultdict(list))
    for found in (each for folder in _FOLDERS for each in store.objects(folder)):
        folder, name = found.path.rsplit("/", 1)
        claims[folder][name.partition(".")[0]].append(found)
    return {folder: numbers[max(numbers)] for folder, numbers in sorted(claims.items())}


_CLOCKS = "clocks"
# Longer than it takes from a manifest's time to its write.
_NOTICEABLE_SKEW = timedelta(minutes=1)


def examine_clocks(store: Store) -> list[HealthFinding]:
    """Compare the clock of each stream's driver with the store's at the time of its newest manifest."""
    return [_clock_finding(stream, ahead) for stream in stream_names(store) for ahead in _clock_of(store, stream)]


def _clock_of(store: Store, stream: str) -> Iterator[timedelta]:
    """Yield how far the driver's clock was ahead of the store's; nothing for a stream without batches."""
    manifests = Manifests(store, stream)
    for newest in manifests.last(1):
        stored_at = manifests.stored_at(newest.batch_id)
        if stored_at is not None:
            yield datetime.fromisoformat(newest.written_at) - stored_at


def _clock_finding(stream: str, ahead: timedelta) -> HealthFinding:
    if abs(ahead) <= _NOTICEABLE_SKEW:
        return passed(_CLOCKS, f"{stream}: its driver's clock and the store's agreed at the newest batch")
    seconds, direction = abs(ahead).total_seconds(), "ahead of" if ahead > timedelta(0) else "behind"
    return (failed if abs(ahead) > TOLERATED_SKEW else warned)(
        _CLOCKS,
        f"{stream}: its driver's clock was {seconds:.0f} s {direction} the store's at the newest batch",
        "set the clocks of both machines, by NTP; docs/delivery-guarantees.md, heading 'Clocks', says what they decide",
    )


def examine_held_tables(store: Store) -> list[HealthFinding]:
    """Return one line for each table that streams hold back."""
    return [
        failed(_TABLES, f"{held.table}: {held.stream} holds it back since batch {held.since} ({held.reason})", _HELD)
        for _, records in held_tables(store)
        for held in records.values()
    ]


_STREAMS = "streams"
# Longer than a batch takes, its pause, and a restart.
_STANDS_STILL = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamState:
    """The state of a stream; None for what Kafka did not report.

    Attributes:
        trouble: what is wrong with its checkpoint, and the remedy; empty if nothing.
        waiting: records that Kafka holds beyond its last batch.
        lost: records that Kafka no longer holds, and that it has yet to read.
        same_topic: whether the topic is the one that it counts in.
    """

    name: str
    batches: int
    last_batch_at: datetime | None
    trouble: str = ""
    waiting: int | None = None
    lost: int = 0
    same_topic: bool = True


def waiting_and_lost(positions: Mapping[int, int], held: Mapping[int, tuple[int, int]]) -> tuple[int, int]:
    """Return the numbers of records beyond a stream's positions and of deleted ones before, by Kafka's (first, end)."""
    waiting = sum(max(end - max(positions.get(each, first), first), 0) for each, (first, end) in held.items())
    lost = sum(max(first - positions[each], 0) for each, (first, _) in held.items() if each in positions)
    return waiting, lost


def examine_stream(state: StreamState, now: datetime) -> Iterator[HealthFinding]:
    """Examine one stream."""
    rebuild = "python -m jobs.rebuild_checkpoint"
    if state.trouble:
        yield failed(_STREAMS, f"{state.name}: {state.trouble}", "")
    if not state.same_topic:
        yield failed(_STREAMS, f"{state.name}: its topic was deleted and created again", f"{rebuild} --new-topic")
    if state.lost:
        yield failed(
            _STREAMS, f"{state.name}: Kafka no longer holds {state.lost:,} records that it has yet to read",
            f"{rebuild} --skip-lost gives them up, on record",
        )  # fmt: skip
    if state.last_batch_at is None:
        yield warned(_STREAMS, f"{state.name}: no batch yet", "send it something: make smoke, make demo-stack")
        return
    age = now - state.last_batch_at
    message = f"{state.name}: batch {state.batches - 1:,}, {_age_text(age)} ago"
    if state.waiting is None:
        yield passed(_STREAMS, message)
    elif state.waiting and age > _STANDS_STILL:
        remedy = "read its log: make logs S=ingest-events"
        yield failed(_STREAMS, f"{message}, and {state.waiting:,} records wait", remedy)
    else:
        yield passed(_STREAMS, f"{message}; {state.waiting:,} records wait")


def _age_text(age: timedelta) -> str:
    seconds = age.total_seconds()
    return f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 3_600:.1f} h"  # noqa: PLR2004 # what reads well


_AT_ONCE = 8
_ENTRY = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\b.*\.parquet")
_TABLES = "tables"
_NAMED = 3
_HELD = "monitoring/runbooks/TablesHeldBack.md says how to correct it; it catches up then"
_CORRUPTED = "docs/operations.md, heading 'Drills', describes the repair of a damaged log"
_UPGRADED = "docs/operations.md, heading 'Table features of other programs', says what continues and what stops"
_DELETED = "find what deletes files, jobs/vacuum.py apart; docs/operations.md, heading 'Drills', says how to rebuild"


@dataclass(frozen=True, slots=True)
class TableReadings:
    """The state of one table: how many live files it has, or what is wrong with it; a newer protocol than its own."""

    table: str
    files: int = 0
    trouble: str = ""
    remedy: str = ""
    upgrade: str = ""
    is_appended: bool = True


def examine_tables(store: Store, tables: Sequence[str]) -> list[HealthFinding]:
    """Examine all tables: one line for the healthy ones, and one for each other."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        readings = list(pool.map(lambda table: read_table_health(store, table), tables))
    bad = [each for each in readings if each.trouble]
    files = sum(each.files for each in readings)
    well = passed(_TABLES, f"{len(readings) - len(bad)} are readable and whole, {files:,} files")
    damaged = [failed(_TABLES, f"{each.table}: {each.trouble}", each.remedy) for each in bad]
    return [well, *damaged, *(_upgrade_finding(each) for each in readings if each.upgrade)]


def _upgrade_finding(readings: TableReadings) -> HealthFinding:
    found = f"{readings.table}: another program has upgraded its protocol ({readings.upgrade})"
    return (warned if readings.is_appended else failed)(_TABLES, found, _UPGRADED)


def read_table_health(store: Store, table: str) -> TableReadings:
    """Read the health of one table from its log, then from the files that the newest version names."""
    objects = store.paths(table)
    names = [path.rsplit("/", 1)[-1] for path in objects if path.startswith(f"{table}/{LOG_FOLDER}/")]
    entries, checkpoint = _numbers(_ENTRY, names), max(_numbers(_CHECKPOINT, names), default=-1)
    read = [version for version in entries if version > checkpoint]
    trouble = _hole(checkpoint, read) or _damage(store, table, read)
    if trouble:
        return TableReadings(table, trouble=trouble, remedy=_CORRUPTED)
    try:
        handle = open_table(store.location, table)
        live, demands = list(live_paths(handle)), TableDemands.of(handle)
    except (DeltaError, GamelakeError, ValueError) as error:
        return TableReadings(table, trouble=f"it can't be opened ({str(error).splitlines()[0]})", remedy=_CORRUPTED)
    there = set(objects)
    # A clone names files of other tables, by their whole addresses.
    own = [path for path in live if ":" not in path.split("/", 1)[0]]
    gone = sorted(place for place in own if f"{table}/{place}" not in there)
    if gone and _is_replaced(store, table, gone):
        gone = []
    message = f"{len(gone)} of its files are gone, such as {', '.join(gone[:_NAMED])}" if gone else ""
    obstacles = demands.obstacles(TableUse.APPEND)
    return TableReadings(table, len(live), message, _DELETED, _upgrade(store, table, demands, obstacles), not obstacles)


def _upgrade(store: Store, table: str, demands: TableDemands, obstacles: Sequence[str]) -> str:
    """What is newer in the protocol of a table, which features its stream can't append to, and what these deleted."""
    if not demands.is_upgraded:
        return ""
    found = f"reader version {demands.reader}, writer version {demands.writer}"
    found += f", {', '.join(sorted(demands.listed))}" if demands.listed else ""
    found += f"; no batch can be appended because of {', '.join(obstacles)}" if obstacles else ""
    deleted = TableLog.read(store, table).vector_deleted_rows if DELETION_VECTORS in demands.features else 0
    return found + (f"; deletion vectors delete {deleted} rows" if deleted else "")


def _is_replaced(store: Store, table: str, gone: Sequence[str]) -> bool:
    """Return True if a file was never missing: listed before it came, or deleted after it was no longer needed."""
    there = set(store.paths(table))
    live = set(live_paths(open_table(store.location, table)))
    return all(f"{table}/{place}" in there or place not in live for place in gone)


def _numbers(pattern: re.Pattern[str], names: Sequence[str]) -> list[int]:
    return sorted(int(match[1]) for name in names if (match := pattern.fullmatch(name)))


def _hole(checkpoint: int, entries: Sequence[int]) -> str:
    """What the log lacks since the newest checkpoint, or since the beginning."""
    missing = [before + 1 for before, after in pairwise([checkpoint, *entries]) if after != before + 1]
    return f"its log lacks version {missing[0]}" if missing else ""


def _damage(store: Store, table: str, entries: Sequence[int]) -> str:
    """The first of some entries that is not what an entry is."""
    for version in entries:
        content = store.get(entry_path(table, version)) or b""
        try:
            decode_entry(content)
        except ValueError:
            return f"the entry of version {version} is damaged"
    return ""
