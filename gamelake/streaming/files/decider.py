"""Deciding a batch of notifications: which objects are new, what stands in them, and what becomes of each."""

import logging
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from urllib.parse import quote

import msgspec
import numpy as np
import pyarrow as pa
from deltalake.exceptions import TableNotFoundError
from pyspark.sql import DataFrame

from gamelake.layers.known_events import Events
from gamelake.model.errors import IncompatibleSchemaError, RegistryUnavailableError, TwiceTakenError
from gamelake.model.failpoints import Failpoints
from gamelake.model.naming import SILVER_EVENTS
from gamelake.quality.judging import merge_judged
from gamelake.quality.rules_in_force import RulesInForce
from gamelake.schemas.registry import SchemaRegistry
from gamelake.storage.delta_log import FileEntry
from gamelake.storage.manifests import BatchManifest, EventsFile, EventsSection, FilesTaken, OffsetRange, TableFiles
from gamelake.storage.store import Store
from gamelake.storage.tables import open_table
from gamelake.streaming.batch import FanOut, OpenStream
from gamelake.streaming.cross_source import ConcurrentStream
from gamelake.streaming.decision import Decision, sum_counts
from gamelake.streaming.dedup_window import DedupLimits, DedupWindow
from gamelake.streaming.files.chooser import Chooser, ChosenObjects
from gamelake.streaming.files.landing import bucket_of
from gamelake.streaming.files.ledger import ObjectOutcome, ObjectResult, addition
from gamelake.streaming.files.plan import FileDedupPlan, FilesPlan, TaskInput, encode_task_input, task_inputs
from gamelake.streaming.files.settings import FilesSettings
from gamelake.streaming.files.silver_ids import KEYS, OBJECTS
from gamelake.streaming.files.task import FilesReport, FilesTask, unpack
from gamelake.streaming.kafka_source import PlannedOffsets, taken_offsets
from gamelake.streaming.plan import REPORT_SCHEMA, DedupPlan, merge_offsets
from gamelake.streaming.runner import stream_context
from gamelake.streaming.table_columns import TableColumns
from gamelake.streaming.task import offset_ranges

log = logging.getLogger(__name__)


@dataclass
class NewestSchema:
    """Asks the registry now and then; while it is silent, the last answer counts."""

    registry: SchemaRegistry
    subject: str
    ask_again_after: timedelta = timedelta(seconds=30)
    clock: Callable[[], float] = time.monotonic
    _known: int | None = None
    _until: float = field(default=float("-inf"))

    def id(self) -> int:
        """The id of the newest version.

        Raises:
            UnknownSchemaError: no version is registered.
            RegistryUnavailableError: the registry has never answered.
        """
        if self.clock() >= self._until:
            self._ask()
        assert self._known is not None  # noqa: S101 # else asking has raised
        return self._known

    def _ask(self) -> None:
        try:
            self._known = self.registry.newest(self.subject)
        except RegistryUnavailableError as error:
            if self._known is None:
                raise
            log.warning("files are read by schema %d, as before: %s", self._known, error)
        self._until = self.clock() + self.ask_again_after.total_seconds()


_ATTEMPTS = 5
_COLUMNS = ("partition", "offset", "timestamp", "value")


@dataclass(frozen=True, slots=True)
class _Agreed:
    """What the tasks have found and written."""

    reports: Sequence[FilesReport] = ()
    tables: tuple[TableFiles, ...] = ()

    @property
    def accounts(self) -> list[ObjectResult]:
        """What became of each object."""
        return [account for report in self.reports for account in report.accounts]


@dataclass
class FilesDecider:
    """Runs the tasks of batches of files; remembers the tables' columns from batch to batch."""

    plan: FilesPlan
    columns: TableColumns
    chooser: Chooser
    newest: NewestSchema
    rules: RulesInForce
    events: ConcurrentStream
    cores: int
    remembered: int

    def decide(self, records: DataFrame, planned: PlannedOffsets, dedup: DedupPlan | None = None) -> Decision:
        """Read and write all files that a batch's notifications name; commit nothing.

        Raises:
            IncompatibleSchemaError: the tasks could not agree on a table's columns.
            OffsetGapError: the notifications are not the ones that the batch planned to read.
            RegistryUnavailableError: the schema of files can't be had.
        """
        assert dedup is not None  # noqa: S101 # this stream always remembers
        notifications = records.select(*_COLUMNS).toArrow().combine_chunks()
        chosen = self.chooser.choose(notifications, dedup)
        agreed = self._agreed(records, chosen, dedup) if chosen.objects or chosen.letters else _Agreed()
        reports = [each.report for each in agreed.reports]
        store = self.chooser.store
        return Decision(
            offsets=taken_offsets(planned, _offsets(notifications)),
            tables=(*agreed.tables, *addition(store, agreed.accounts)),
            dead_letters=sum_counts(report.dead_letters for report in reports),
            duplicates=sum_counts(report.duplicates for report in reports),
            events=(
                *write_identities(store, chosen, dedup),
                *(each.events for each in reports if each.events is not None),
            ),
            judged=msgspec.structs.replace(
                merge_judged(report.judged for report in reports), refused=self.rules.refused
            ),
            files=_taken(chosen, agreed.accounts),
        )

    def _twins(self, dedup: DedupPlan) -> FileDedupPlan:
        """Where silver stands, and what the stream of records has decided and not yet committed to it."""
        last = self.events.last
        try:
            handle = open_table(self.plan.reading.lakehouse, SILVER_EVENTS)
        except TableNotFoundError:
            handle = None
        taken = handle.transaction_version(last.app_id) if handle and last else None
        is_behind = last is not None and (taken is None or taken < last.batch_id)
        return FileDedupPlan(
            folder=dedup.folder,
            batch_id=dedup.batch_id,
            seed=dedup.seed,
            silver=handle.version() if handle else None,
            uncommitted=_silver_files(last) if last is not None and is_behind else (),
            remembered=self.remembered,
        )

    def _agreed(self, records: DataFrame, chosen: ChosenObjects, dedup: DedupPlan) -> _Agreed:
        plan = replace(self.plan, schema_id=self.newest.id(), twins=self._twins(dedup))
        claimed: dict[int, Events] = {}
        conflict: Exception = TwiceTakenError("the tasks of a batch keep finding events that others of them have too")
        for _ in range(_ATTEMPTS):
            reading = replace(plan.reading.for_tables(self.columns.schemas), rules=self.rules.now())
            shares = task_inputs(chosen.objects, chosen.letters, self.cores, claimed)
            reports = _run(records, replace(plan, reading=reading), shares)
            try:
                tables = self.columns.agree(file for each in reports for file in each.report.files)
            except IncompatibleSchemaError as error:
                log.warning("running the batch again: %s", error)
                conflict = error
                continue
            claims = events_of_earlier_tasks(self.chooser.store, reports)
            if not claims:
                return _Agreed(reports, tables)
            log.info("running the batch again: %d tasks have events that others have too", len(claims))
            for number, events in claims.items():
                claimed[number] = Events.joined([claimed[number], events]) if number in claimed else events
        raise conflict


def _silver_files(manifest: BatchManifest) -> tuple[FileEntry, ...]:
    """What a batch adds to silver, whether it is committed or not."""
    files = (file for entry in manifest.tables if entry.table == SILVER_EVENTS for file in entry.files)
    return tuple(FileEntry(quote(file.path), file.size, file.partition) for file in files)


def _run(records: DataFrame, plan: FilesPlan, shares: Sequence[TaskInput]) -> list[FilesReport]:
    spark = records.sparkSession
    rows = spark.sparkContext.parallelize([(bytearray(encode_task_input(share)),) for share in shares], len(shares))
    found = spark.createDataFrame(rows, "parcel binary").mapInArrow(FilesTask(plan), REPORT_SCHEMA).collect()
    return unpack([bytes(row.report) for row in found])


def events_of_earlier_tasks(store: Store, reports: Sequence[FilesReport]) -> dict[int, Events]:
    """Of each task the events that one before it has as well; identities without their times."""
    taken: dict[int, list[Events]] = {}
    for each in reports:
        if each.report.events is not None:
            content = store.get(each.report.events.path)
            taken.setdefault(each.parcel, []).append(Events.unpack(content or b""))
    if len(taken) < 2:  # noqa: PLR2004 # nobody to share with
        return {}
    numbers = np.concatenate([np.full(sum(map(len, parts)), parcel) for parcel, parts in taken.items()])
    events = Events.joined([part for parts in taken.values() for part in parts])
    order = np.lexsort((numbers, events.low, events.high))
    high, low, by = events.high[order], events.low[order], numbers[order]
    again = np.flatnonzero((high[1:] == high[:-1]) & (low[1:] == low[:-1])) + 1
    return {int(number): events.take(order[again[by[again] == number]]) for number in np.unique(by[again])}


def _offsets(notifications: pa.Table) -> tuple[OffsetRange, ...]:
    return merge_offsets(taken for batch in notifications.to_batches() for taken in offset_ranges(batch))


def write_identities(store: Store, chosen: ChosenObjects, dedup: DedupPlan) -> Iterator[EventsFile]:
    """The identities of what was taken, written for the batches to come."""
    if chosen.taken is None or chosen.keys is None or not len(chosen.taken):
        return
    sections, content = [], b""
    for partition, events in ((OBJECTS, chosen.taken), (KEYS, chosen.keys)):
        newest = int(events.seconds.max())
        sections.append(EventsSection(partition=partition, start=len(content), events=len(events), newest=newest))
        content += events.pack()
    path = f"{dedup.folder}/{dedup.batch_id:012d}-{uuid.uuid4()}"
    store.put(path, content)
    yield EventsFile(path=path, sections=tuple(sections))


def _taken(chosen: ChosenObjects, accounts: Sequence[ObjectResult]) -> FilesTaken:
    by_outcome = {outcome.value: 0 for outcome in ObjectOutcome}
    for account in accounts:
        by_outcome[account.outcome.value] += 1
    return FilesTaken(
        objects={name: count for name, count in by_outcome.items() if count},
        passed_over={name: count for name, count in sorted(chosen.passed_over.items()) if count},
        records=sum(account.records for account in accounts),
        bytes=sum(account.bytes for account in accounts),
    )


# Those of events are not read by this stream, which looks into silver.
_MOST_IDENTITIES = 10**9


def files_fan_out(settings: FilesSettings, source: OpenStream, store: Store, cores: int) -> FanOut[DedupPlan]:
    """The batch function of an open stream of notifications.

    Raises:
        ContractError: the games contract is impossible, or not that of the tables that are there; or a rule is.
    """
    reading = settings.reading
    found = stream_context(reading, source, store)
    # An object is known again by its name and content: objects are the events of this window.
    window = DedupWindow(store, reading.stream, DedupLimits(window=settings.remembered, events=_MOST_IDENTITIES))
    window.resume(source.stream.manifests)
    events = ConcurrentStream(store, settings.events_stream)
    decider = FilesDecider(
        plan=FilesPlan(reading=found.plan, landing=settings.landing, schema_id=0, limits=settings.limits),
        columns=TableColumns(found.schemas),
        chooser=Chooser(bucket_of(settings.landing), settings.prefix, settings.overwritten, store),
        newest=NewestSchema(SchemaRegistry(reading.registry_url), settings.subject),
        rules=found.rules,
        events=events,
        cores=cores,
        remembered=reading.dedup.events,
    )
    return FanOut(source, decider, found.breaker, Failpoints(reading.kill), window, events)
