"""Decides a batch of notifications: chooses the new objects, runs the tasks that read them, and joins their reports."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import msgspec
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from pyspark.sql import SparkSession

from gamelake.delta.log.codec import FileEntry
from gamelake.delta.table_files import TableFiles
from gamelake.delta.tables import open_table
from gamelake.ledger.held_tables import waiting_files
from gamelake.ledger.manifests import BatchManifest, EventsFile, FilesTaken, OffsetRange
from gamelake.ledger.replay_manifests import ReplayManifest
from gamelake.ledger.skipped_records import SkippedRecords
from gamelake.model.failpoints import Failpoints
from gamelake.model.naming import SILVER_EVENTS
from gamelake.objects.store import Store
from gamelake.quality.judging import merge_judged
from gamelake.quality.rules_in_force import RulesInForce
from gamelake.schemas.registry import SchemaRegistry
from gamelake.streaming.dedup.cross_source import ConcurrentStream
from gamelake.streaming.dedup.identity_files import write_identities
from gamelake.streaming.dedup.window import DedupLimits, DedupWindow
from gamelake.streaming.driver.batch import FanOut, OpenStream
from gamelake.streaming.driver.decision import SMALL_CHUNK, Decision, sum_counts
from gamelake.streaming.driver.observers import BatchObserver
from gamelake.streaming.driver.runner import careful_decider, stream_context
from gamelake.streaming.driver.table_columns import TableColumns
from gamelake.streaming.files.arrivals.any_names import bucket_of
from gamelake.streaming.files.chooser import Chooser, ChosenObjects
from gamelake.streaming.files.claims import Claims
from gamelake.streaming.files.file_schema import NewestSchema, file_reader
from gamelake.streaming.files.ledger import ObjectOutcome, ObjectResult, addition
from gamelake.streaming.files.plan import FileDedupPlan, FilesPlan, TaskInput, encode_task_input, task_inputs
from gamelake.streaming.files.settings import FilesSettings
from gamelake.streaming.files.silver_ids import KEYS, OBJECTS
from gamelake.streaming.files.task import FilesReport, FilesTask, unpack
from gamelake.streaming.kafka.batch_records import BatchRecords
from gamelake.streaming.kafka.source import PlannedOffsets, taken_offsets
from gamelake.streaming.plan import DedupPlan, WrittenFile, clock_now, merge_offsets
from gamelake.streaming.tasks.task import offset_ranges

_COLUMNS = ["partition", "offset", "timestamp", "value"]
# This stream does not read the identities of events: it searches silver instead.
_MOST_IDENTITIES = 10**9


@dataclass(frozen=True, slots=True)
class _Agreed:
    """The reports of an attempt whose tasks agree on columns and on events.

    Attributes:
        reports: in the order of task numbers.
        tables: the files and columns of each table.
    """

    reports: Sequence[FilesReport] = ()
    tables: tuple[TableFiles, ...] = ()

    @property
    def results(self) -> list[ObjectResult]:
        """The result of each object, in the order of reports."""
        return [result for report in self.reports for result in report.results]


@dataclass
class FilesDecider:
    """Runs the tasks of batches of files; keeps the columns of the tables from batch to batch.

    Attributes:
        plan: of every batch; the columns, rules, clock, schema and identities are added for each batch or part of it.
        columns: of the tables; they grow with new files.
        chooser: chooses the objects of a batch.
        newest: the schema that files are read with.
        rules: read again for each decision.
        events: the stream of Kafka records, which writes the same tables.
        cores: of all executors.
        remembered: the largest number of identities that a worker process keeps in memory from batch to batch.
    """

    plan: FilesPlan
    columns: TableColumns
    chooser: Chooser
    newest: NewestSchema
    rules: RulesInForce
    events: ConcurrentStream
    cores: int
    remembered: int
    _skipped: tuple[SkippedRecords, ...] = ()

    def learn(self, columns: Mapping[str, pa.Schema]) -> bool:
        """Replace the known columns of tables that other writers have widened, by table name; return True."""
        self.columns.learn(columns)
        return True

    def skip(self, skipped: Sequence[SkippedRecords]) -> None:
        """Write these notifications, and no others, to the dead letters from now on, without reading their objects."""
        self._skipped = tuple(skipped)

    def decide(self, records: BatchRecords, planned: PlannedOffsets, dedup: DedupPlan | None = None) -> Decision:
        """Read all new files that a batch's notifications name, and write their rows; commit nothing.

        Raises:
            KafkaUnavailableError: Kafka does not respond.
            OffsetGapError: the notifications are not those that the batch planned to read.
            ContractError: no schema of the subject can be used.
            RegistryUnavailableError: the registry does not respond, and no schema is known.
            TwiceTakenError: two tasks ingested the same event, though one of them knew that the other has it.
        """
        assert dedup is not None  # noqa: S101 # this stream always has a window
        notifications, chosen = self._chosen(records, dedup)
        agreed = self._agreed(records.spark, chosen, dedup) if chosen.objects or chosen.rejected else _Agreed()
        reports = [each.report for each in agreed.reports]
        store = self.chooser.store
        return Decision(
            offsets=taken_offsets(planned, _offsets(notifications)),
            tables=(*agreed.tables, *addition(store, agreed.results)),
            dead_letters=sum_counts(report.dead_letters for report in reports),
            duplicates=sum_counts(report.duplicates for report in reports),
            events=(
                *remember_objects(store, chosen, dedup),
                *(each.events for each in reports if each.events is not None),
            ),
            judged=msgspec.structs.replace(
                merge_judged(report.judged for report in reports), refused=self.rules.refused
            ),
            files=_taken(chosen, agreed.results, self.newest.unusable),
        )

    def decide_with_less_memory(
        self, records: BatchRecords, planned: PlannedOffsets, dedup: DedupPlan | None = None
    ) -> Decision:
        """Decide with one task that reads one file at a time; see `decide`."""
        return replace(self, plan=_with_less_memory(self.plan), cores=1).decide(records, planned, dedup)

    def try_part(self, records: BatchRecords, dedup: DedupPlan | None = None) -> None:
        """Read the files of a part of a batch in one task, and discard the results.

        Raises:
            Exception: the task fails or is killed.
        """
        assert dedup is not None  # noqa: S101 # as above
        _, chosen = self._chosen(records, dedup)
        if chosen.objects or chosen.rejected:
            inputs = task_inputs(chosen.objects, chosen.rejected, 1, {})
            self._run(records.spark, _with_less_memory(self._present_plan(dedup)), inputs)

    def _chosen(self, records: BatchRecords, dedup: DedupPlan) -> tuple[pa.Table, ChosenObjects]:
        """Read the notifications of a batch, and choose the objects."""
        notifications = records.read().select(_COLUMNS).combine_chunks()
        return notifications, self.chooser.choose(notifications, dedup, self._skipped)

    def _present_plan(self, dedup: DedupPlan) -> FilesPlan:
        """Plan a batch or a part of it, with everything that changes from batch to batch except the columns."""
        reading = replace(
            self.plan.reading, rules=self.rules.now(), clock=clock_now(), other_sources=self.events.replays.taken
        )
        return replace(self.plan, reading=reading, schema_id=self.newest.id(), dedup=self._dedup_plan(dedup))

    def _dedup_plan(self, dedup: DedupPlan) -> FileDedupPlan:
        """Plan the search for duplicates: in the current version of silver, and in files that are not committed."""
        replays = self.events.replays.unfinished()
        try:
            handle = open_table(self.plan.reading.lakehouse, SILVER_EVENTS)
        except TableNotFoundError:
            handle = None
        return FileDedupPlan(
            folder=dedup.folder,
            batch_id=dedup.batch_id,
            seed=dedup.seed,
            silver=handle.version() if handle else None,
            uncommitted=uncommitted_silver_files(self.chooser.store, handle, self.events.last, replays),
            remembered=self.remembered,
        )

    def _agreed(self, spark: SparkSession, chosen: ChosenObjects, dedup: DedupPlan) -> _Agreed:
        """Run the tasks until they agree on the columns of tables and on which of them ingests each event."""
        plan, claims = self._present_plan(dedup), Claims(self.chooser.store)

        def run() -> tuple[list[FilesReport], list[WrittenFile]]:
            reports = self._run(spark, plan, task_inputs(chosen.objects, chosen.rejected, self.cores, claims.by_task))
            return reports, [file for each in reports for file in each.report.files]

        while True:
            reports, tables = self.columns.agree_on(run)
            if not claims.grow(reports):
                return _Agreed(reports, tables)

    def _run(self, spark: SparkSession, plan: FilesPlan, inputs: Sequence[TaskInput]) -> list[FilesReport]:
        """Run tasks with the columns that are known now."""
        plan = replace(plan, reading=plan.reading.for_tables(self.columns.schemas))
        encoded = spark.sparkContext.parallelize([encode_task_input(each) for each in inputs], len(inputs))
        return unpack(encoded.mapPartitions(FilesTask(plan)).collect())


def _with_less_memory(plan: FilesPlan) -> FilesPlan:
    """Change a plan so that a task reads one file at a time."""
    return replace(plan, reading=replace(plan.reading, chunk=SMALL_CHUNK), readers=1)


def uncommitted_silver_files(
    store: Store, silver: DeltaTable | None, last: BatchManifest | None, replays: Sequence[ReplayManifest] = ()
) -> tuple[FileEntry, ...]:
    """Collect the files of silver/events that are decided but not committed.

    Args:
        store: the lakehouse.
        silver: the table at the version that is searched; None if the table does not exist.
        last: the last batch of the stream of records; None if there is none.
        replays: replays that may be unfinished, read before the table.

    Returns:
        The files of the last batch if the table lacks it, the files of the replays, and the files of all waiting
        batches if the table is held back. No path occurs twice.
    """
    taken = silver.transaction_version(last.app_id) if silver and last else None
    entries = [waiting.entry for waiting in waiting_files(store, SILVER_EVENTS)]
    entries += [entry for replay in replays for entry in replay.tables if entry.table == SILVER_EVENTS]
    if last is not None and (taken is None or taken < last.batch_id):
        entries += [entry for entry in last.tables if entry.table == SILVER_EVENTS]
    # The last batch may be a waiting one too.
    files = {file.path: file for entry in entries for file in entry.files}
    return tuple(FileEntry.of(file) for file in files.values())


def _offsets(notifications: pa.Table) -> tuple[OffsetRange, ...]:
    return merge_offsets(taken for batch in notifications.to_batches() for taken in offset_ranges(batch))


def remember_objects(store: Store, chosen: ChosenObjects, dedup: DedupPlan) -> Iterator[EventsFile]:
    """Write the identities of the chosen objects and of their keys, for later batches."""
    if chosen.taken is None or chosen.keys is None or not len(chosen.taken):
        return
    by_partition = {OBJECTS: chosen.taken, KEYS: chosen.keys}
    sections = {number: (events, int(events.seconds.max())) for number, events in by_partition.items()}
    yield write_identities(store, dedup.folder, dedup.batch_id, sections)


def _taken(chosen: ChosenObjects, results: Sequence[ObjectResult], unusable_schema: int) -> FilesTaken:
    by_outcome = {outcome.value: 0 for outcome in ObjectOutcome}
    for result in results:
        by_outcome[result.outcome.value] += 1
    return FilesTaken(
        objects={name: count for name, count in by_outcome.items() if count},
        passed_over={name: count for name, count in sorted(chosen.ignored.items()) if count},
        records=sum(result.records for result in results),
        bytes=sum(result.bytes for result in results),
        unusable_schema=unusable_schema,
    )


def files_fan_out(
    settings: FilesSettings, source: OpenStream, cores: int, observers: Sequence[BatchObserver] = ()
) -> FanOut[DedupPlan]:
    """Create the batch function of a stream of notifications.

    Args:
        settings: of the stream.
        source: the stream, open.
        cores: of all executors.
        observers: are notified of each batch.

    Raises:
        ContractError: the games contract or a rule is invalid, or does not fit the existing tables.
    """
    reading, store = settings.reading, source.stream.store
    context = stream_context(reading, source)
    # The window of this stream has the identities of objects (name and content) instead of events.
    window = DedupWindow(store, reading.stream, DedupLimits(window=settings.remembered, events=_MOST_IDENTITIES))
    window.resume(source.stream.manifests)
    events = ConcurrentStream(store, settings.events_stream)
    decider = FilesDecider(
        plan=FilesPlan(reading=context.plan, landing=settings.landing, schema_id=0, limits=settings.limits),
        columns=TableColumns(context.schemas),
        chooser=Chooser(bucket_of(settings.landing), settings.prefix, settings.overwritten, store),
        newest=NewestSchema(
            SchemaRegistry(reading.registry_url), settings.subject, check=partial(file_reader, context.plan)
        ),
        rules=context.rules,
        events=events,
        cores=cores,
        remembered=reading.dedup.in_memory,
    )
    careful = careful_decider(decider, source)
    return FanOut(source, careful, context.breaker, Failpoints(reading.kill), window, events, observers)
