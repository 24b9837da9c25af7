"""Decides a batch of notifications: chooses the new objects, runs the tasks that read them, and joins their reports."""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from urllib.parse import quote

import msgspec
import numpy as np
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from pyspark.sql import SparkSession

from gamelake.layers.known_events import Events
from gamelake.model.errors import IncompatibleSchemaError, RegistryUnavailableError, TwiceTakenError
from gamelake.model.failpoints import Failpoints
from gamelake.model.logs import event_logger
from gamelake.model.naming import SILVER_EVENTS
from gamelake.quality.judging import merge_judged
from gamelake.quality.rules_in_force import RulesInForce
from gamelake.schemas.registry import SchemaRegistry
from gamelake.storage.delta_log import FileEntry
from gamelake.storage.held_tables import waiting_files
from gamelake.storage.manifests import BatchManifest, EventsFile, EventsSection, FilesTaken, OffsetRange, TableFiles
from gamelake.storage.store import Store
from gamelake.storage.tables import open_table
from gamelake.streaming.batch import FanOut, OpenStream
from gamelake.streaming.batch_records import BatchRecords
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
from gamelake.streaming.plan import DedupPlan, clock_now, merge_offsets
from gamelake.streaming.runner import stream_context
from gamelake.streaming.table_columns import TableColumns
from gamelake.streaming.task import offset_ranges

log = event_logger(__name__)

_ATTEMPTS = 5
_COLUMNS = ["partition", "offset", "timestamp", "value"]
# The identities of events are not read by this stream: it searches silver.
_MOST_IDENTITIES = 10**9


@dataclass
class NewestSchema:
    """The id of the newest schema, cached for `cached_for`; the last known id if the registry does not respond."""

    registry: SchemaRegistry
    subject: str
    cached_for: timedelta = timedelta(seconds=30)
    clock: Callable[[], float] = time.monotonic
    _known: int | None = None
    _until: float = field(default=float("-inf"))

    def id(self) -> int:
        """The id of the newest version.

        Raises:
            UnknownSchemaError: no version is registered.
            RegistryUnavailableError: the registry does not respond, and no id is known.
        """
        if self.clock() >= self._until:
            self._refresh()
        assert self._known is not None  # noqa: S101 # else _refresh has raised
        return self._known

    def _refresh(self) -> None:
        try:
            self._known = self.registry.newest(self.subject)
        except RegistryUnavailableError as error:
            if self._known is None:
                raise
            log.warning(
                "registry_unavailable", schema=self._known, error=error, action="files are still read by this schema"
            )
        self._until = self.clock() + self.cached_for.total_seconds()


@dataclass(frozen=True, slots=True)
class _Agreed:
    """The reports of an attempt whose tasks agree on columns and on events."""

    reports: Sequence[FilesReport] = ()
    tables: tuple[TableFiles, ...] = ()

    @property
    def results(self) -> list[ObjectResult]:
        """The result of each object."""
        return [result for report in self.reports for result in report.results]


@dataclass
class FilesDecider:
    """Runs the tasks of batches of files; keeps the columns of the tables from batch to batch."""

    plan: FilesPlan
    columns: TableColumns
    chooser: Chooser
    newest: NewestSchema
    rules: RulesInForce
    events: ConcurrentStream
    cores: int
    remembered: int

    def learn(self, columns: Mapping[str, pa.Schema]) -> None:
        """Take over the columns that other writers have given to tables, by table name."""
        self.columns.learn(columns)

    def decide(self, records: BatchRecords, planned: PlannedOffsets, dedup: DedupPlan | None = None) -> Decision:
        """Read all files that a batch's notifications name and write their rows; commit nothing.

        Raises:
            IncompatibleSchemaError: a table's columns conflicted in every attempt.
            KafkaUnavailableError: Kafka does not respond.
            OffsetGapError: the notifications are not those that the batch planned to read.
            RegistryUnavailableError: the registry does not respond, and no schema is known.
            TwiceTakenError: in every attempt two tasks had the same event.
        """
        assert dedup is not None  # noqa: S101 # this stream always has a window
        notifications = records.read().select(_COLUMNS).combine_chunks()
        chosen = self.chooser.choose(notifications, dedup)
        agreed = self._agreed(records.spark, chosen, dedup) if chosen.objects or chosen.rejected else _Agreed()
        reports = [each.report for each in agreed.reports]
        store = self.chooser.store
        return Decision(
            offsets=taken_offsets(planned, _offsets(notifications)),
            tables=(*agreed.tables, *addition(store, agreed.results)),
            dead_letters=sum_counts(report.dead_letters for report in reports),
            duplicates=sum_counts(report.duplicates for report in reports),
            events=(
                *write_identities(store, chosen, dedup),
                *(each.events for each in reports if each.events is not None),
            ),
            judged=msgspec.structs.replace(
                merge_judged(report.judged for report in reports), refused=self.rules.refused
            ),
            files=_taken(chosen, agreed.results),
        )

    def _dedup_plan(self, dedup: DedupPlan) -> FileDedupPlan:
        """The current version of silver, and the files that are decided but not committed."""
        try:
            handle = open_table(self.plan.reading.lakehouse, SILVER_EVENTS)
        except TableNotFoundError:
            handle = None
        return FileDedupPlan(
            folder=dedup.folder,
            batch_id=dedup.batch_id,
            seed=dedup.seed,
            silver=handle.version() if handle else None,
            uncommitted=uncommitted_silver_files(self.chooser.store, handle, self.events.last),
            remembered=self.remembered,
        )

    def _agreed(self, spark: SparkSession, chosen: ChosenObjects, dedup: DedupPlan) -> _Agreed:
        plan = replace(self.plan, schema_id=self.newest.id(), dedup=self._dedup_plan(dedup))
        claimed: dict[int, Events] = {}
        clock = clock_now()
        conflict: Exception = TwiceTakenError(f"in {_ATTEMPTS} attempts two tasks of a batch had the same event")
        for _ in range(_ATTEMPTS):
            reading = replace(plan.reading.for_tables(self.columns.schemas), rules=self.rules.now(), clock=clock)
            inputs = task_inputs(chosen.objects, chosen.rejected, self.cores, claimed)
            reports = _run(spark, replace(plan, reading=reading), inputs)
            try:
                tables = self.columns.agree(file for each in reports for file in each.report.files)
            except IncompatibleSchemaError as error:
                log.warning("batch_decided_again", reason=error)
                conflict = error
                continue
            claims = events_of_earlier_tasks(self.chooser.store, reports)
            if not claims:
                return _Agreed(reports, tables)
            log.info("batch_decided_again", reason="tasks have events that other tasks have too", tasks=len(claims))
            for number, events in claims.items():
                claimed[number] = Events.joined([claimed[number], events]) if number in claimed else events
        raise conflict


def uncommitted_silver_files(
    store: Store, silver: DeltaTable | None, last: BatchManifest | None
) -> tuple[FileEntry, ...]:
    """The files of silver/events that are decided but not committed.

    Args:
        store: the lakehouse.
        silver: the table, at the version that is searched; None if there is none.
        last: the last batch of the stream of records.

    Returns:
        Those of the last batch, if the table lacks it, and those of all batches that wait if the table is held back.
    """
    taken = silver.transaction_version(last.app_id) if silver and last else None
    entries = [waiting.entry for waiting in waiting_files(store, SILVER_EVENTS)]
    if last is not None and (taken is None or taken < last.batch_id):
        entries += [entry for entry in last.tables if entry.table == SILVER_EVENTS]
    # A batch may be the last one and wait.
    files = {file.path: file for entry in entries for file in entry.files}
    return tuple(FileEntry(quote(file.path), file.size, file.partition) for file in files.values())


def _run(spark: SparkSession, plan: FilesPlan, inputs: Sequence[TaskInput]) -> list[FilesReport]:
    encoded = spark.sparkContext.parallelize([encode_task_input(each) for each in inputs], len(inputs))
    return unpack(encoded.mapPartitions(FilesTask(plan)).collect())


def events_of_earlier_tasks(store: Store, reports: Sequence[FilesReport]) -> dict[int, Events]:
    """By task number, the events of a task that a task with a lower number has too; times are not compared."""
    taken: dict[int, list[Events]] = {}
    for each in reports:
        if each.report.events is not None:
            content = store.get(each.report.events.path)
            taken.setdefault(each.task, []).append(Events.decode(content or b""))
    if len(taken) < 2:  # noqa: PLR2004 # one task alone has no duplicates in others
        return {}
    numbers = np.concatenate([np.full(sum(map(len, parts)), task) for task, parts in taken.items()])
    events = Events.joined([part for parts in taken.values() for part in parts])
    order = np.lexsort((numbers, events.low, events.high))
    high, low, by = events.high[order], events.low[order], numbers[order]
    again = np.flatnonzero((high[1:] == high[:-1]) & (low[1:] == low[:-1])) + 1
    return {int(number): events.take(order[again[by[again] == number]]) for number in np.unique(by[again])}


def _offsets(notifications: pa.Table) -> tuple[OffsetRange, ...]:
    return merge_offsets(taken for batch in notifications.to_batches() for taken in offset_ranges(batch))


def write_identities(store: Store, chosen: ChosenObjects, dedup: DedupPlan) -> Iterator[EventsFile]:
    """Write the identities of the chosen objects and of their keys, for later batches."""
    if chosen.taken is None or chosen.keys is None or not len(chosen.taken):
        return
    sections, content = [], b""
    for partition, events in ((OBJECTS, chosen.taken), (KEYS, chosen.keys)):
        newest = int(events.seconds.max())
        sections.append(EventsSection(partition=partition, start=len(content), events=len(events), newest=newest))
        content += events.encode()
    path = f"{dedup.folder}/{dedup.batch_id:012d}-{uuid.uuid4()}"
    store.put(path, content)
    yield EventsFile(path=path, sections=tuple(sections))


def _taken(chosen: ChosenObjects, results: Sequence[ObjectResult]) -> FilesTaken:
    by_outcome = {outcome.value: 0 for outcome in ObjectOutcome}
    for result in results:
        by_outcome[result.outcome.value] += 1
    return FilesTaken(
        objects={name: count for name, count in by_outcome.items() if count},
        passed_over={name: count for name, count in sorted(chosen.ignored.items()) if count},
        records=sum(result.records for result in results),
        bytes=sum(result.bytes for result in results),
    )


def files_fan_out(settings: FilesSettings, source: OpenStream, store: Store, cores: int) -> FanOut[DedupPlan]:
    """The batch function of a stream of notifications.

    Raises:
        ContractError: the games contract or a rule is invalid, or does not fit the existing tables.
    """
    reading = settings.reading
    found = stream_context(reading, source, store)
    # The window of this stream has objects, identified by name and content, in place of events.
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
        remembered=reading.dedup.in_memory,
    )
    return FanOut(source, decider, found.breaker, Failpoints(reading.kill), window, events)
