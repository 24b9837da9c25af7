"""The Spark task of a stream of files: reads objects, writes data files, and reports the result of each object."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
import pyarrow as pa

from gamelake.layers.routing import Router
from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.model.errors import StoreError
from gamelake.schemas.compiler import message_at
from gamelake.schemas.decoder import Rejects
from gamelake.schemas.event_schemas import FIRST_MESSAGE
from gamelake.schemas.registry import SchemaRegistry
from gamelake.schemas.schema_cache import MissingSchema, SchemaCache
from gamelake.storage.store import Store
from gamelake.streaming.duplicates import DuplicateFilter, NoOpDuplicateFilter
from gamelake.streaming.files.coordinates import object_coordinates
from gamelake.streaming.files.fetching import Fetcher, RefusedObject
from gamelake.streaming.files.landing import LandingBucket
from gamelake.streaming.files.ledger import ObjectOutcome, ObjectResult
from gamelake.streaming.files.plan import FilesPlan, NamedObject, RejectedNotification, TaskInput, decode_task_input
from gamelake.streaming.files.reading import FileContent, FileReader, FileRows, UnreadableFile
from gamelake.streaming.files.silver_ids import SilverDuplicateFilter
from gamelake.streaming.plan import TaskPlan, TaskReport
from gamelake.streaming.task import Chunk

# One reader for all tasks of a worker process: its schema is compiled once.
_readers: dict[tuple[str, int], FileReader] = {}


class FilesReport(msgspec.Struct, frozen=True, kw_only=True):
    """One chunk of one task; `results` are in the last chunk, one for each object of the task."""

    task: int
    report: TaskReport
    results: tuple[ObjectResult, ...]


@dataclass(frozen=True, slots=True)
class FilesTask:
    """The function that Spark maps over the task inputs of a batch (`mapPartitions`)."""

    plan: FilesPlan

    def __call__(self, inputs: Iterable[bytes]) -> Iterator[bytes]:
        """Read the objects of each encoded task input; yield a report per chunk, in MessagePack."""
        for encoded in inputs:
            for report in _TaskRun(self.plan, decode_task_input(encoded)).reports():
                yield msgspec.msgpack.encode(report)


@dataclass
class _TaskRun:
    """The run of one task input."""

    plan: FilesPlan
    task: TaskInput
    _refused: list[RefusedObject] = field(default_factory=list)
    _counts: Counter[int] = field(default_factory=Counter)
    _dead: Counter[int] = field(default_factory=Counter)

    def reports(self) -> Iterator[FilesReport]:
        """Read all objects; the last report has their results."""
        reading = self.plan.reading
        chunk = Chunk(reading, self._filter(reading))
        objects = self.task.objects
        where = object_coordinates([(each.position, each.name) for each in objects])
        for rejected in self.task.rejected:
            _dead_letter(chunk, rejected)
        for rows in _reader(self.plan).read(self._files()):
            if isinstance(rows, UnreadableFile):
                self._refused.append(RefusedObject(rows.index, DeadLetterReason.UNREADABLE_FILE, rows.detail))
                continue
            self._take(chunk, where.records(rows.events.values, rows.indexes, rows.numbers), rows)
            if chunk.is_full():
                yield FilesReport(task=self.task.number, report=chunk.flush(), results=())
        for refused in self._refused:
            if refused.reason is not None:
                _dead_letter(chunk, _rejected(objects[refused.index], refused.reason, refused.detail))
        yield FilesReport(task=self.task.number, report=chunk.flush(), results=tuple(self._results()))

    def _filter(self, reading: TaskPlan) -> DuplicateFilter:
        if self.plan.dedup is None:
            return NoOpDuplicateFilter()
        router = Router(reading.contract, reading.unlisted_tables)
        return SilverDuplicateFilter(self.plan.dedup, Store(reading.lakehouse), router, self.task.claimed)

    def _take(self, chunk: Chunk, records: pa.RecordBatch, rows: FileRows) -> None:
        self._counts.update(_counted(rows.indexes))
        bad = np.array(rows.events.rejects.rows, np.int64)
        if not len(bad):
            chunk.take(records)
            return
        self._dead.update(_counted(rows.indexes[bad]))
        rejects = rows.events.rejects
        chunk.add_dead_letters(
            records.take(pa.array(bad)), Rejects(list(range(len(bad))), rejects.reasons, self._where(rows, bad))
        )
        good = np.setdiff1d(np.arange(len(records)), bad)
        if len(good):
            chunk.take(records.take(pa.array(good)))

    def _where(self, rows: FileRows, bad: np.ndarray) -> list[str]:
        """The details of rejected rows, each with its object and row number."""
        objects = self.task.objects
        return [
            f"row {rows.numbers[row] + 1} of {objects[rows.indexes[row]].name.key}: {detail}"
            for row, detail in zip(bad, rows.events.rejects.details, strict=True)
        ]

    def _files(self) -> Iterator[FileContent]:
        """The files that can be read; the others are added to `_refused`."""
        fetcher = Fetcher(LandingBucket(self.plan.landing), self.plan.limits, self.plan.readers)
        for each in fetcher.files(self.task.objects):
            if isinstance(each, RefusedObject):
                self._refused.append(each)
            else:
                yield each

    def _results(self) -> Iterator[ObjectResult]:
        refused = {each.index: each for each in self._refused}
        for index, each in enumerate(self.task.objects):
            refusal = refused.get(index)
            outcome = (
                ObjectOutcome.TAKEN
                if refusal is None
                else ObjectOutcome.DEAD_LETTER
                if refusal.reason
                else ObjectOutcome.SUPERSEDED
            )
            lost = int(outcome is ObjectOutcome.DEAD_LETTER)
            yield ObjectResult(
                position=each.position,
                name=each.name,
                outcome=outcome,
                bytes=each.size,
                records=self._counts[index] + lost,
                dead_letters=self._dead[index] + lost,
                overwrites=each.overwrites,
            )
        for rejected in self.task.rejected:
            yield ObjectResult(
                position=rejected.position,
                name=rejected.name,
                outcome=ObjectOutcome.DEAD_LETTER,
                records=1,
                dead_letters=1,
            )


def _counted(indexes: np.ndarray) -> dict[int, int]:
    found, counts = np.unique(indexes, return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))


def _rejected(named: NamedObject, reason: DeadLetterReason, detail: str) -> RejectedNotification:
    return RejectedNotification(
        position=named.position, name=named.name, value=named.value, reason=reason, detail=detail
    )


def _dead_letter(chunk: Chunk, rejected: RejectedNotification) -> None:
    where = object_coordinates([(rejected.position, rejected.name)])
    zero = np.zeros(1, np.int64)
    record = where.records(pa.array([rejected.value], pa.binary()), zero, zero)
    chunk.add_dead_letters(record, Rejects([0], [rejected.reason], [rejected.detail]))


def _reader(plan: FilesPlan) -> FileReader:
    key = (plan.reading.lakehouse.uri, plan.schema_id)
    if key not in _readers:
        cache = SchemaCache(
            SchemaRegistry(plan.reading.registry_url), Store(plan.reading.lakehouse), plan.reading.schema_wait
        )
        schema = cache.get(plan.schema_id)
        if isinstance(schema, MissingSchema):
            raise StoreError(f"schema {plan.schema_id}, by which files are read, is not available: {schema.detail}")
        _readers[key] = FileReader(message_at(schema, FIRST_MESSAGE), plan.schema_id)
    return _readers[key]


def unpack(rows: Sequence[bytes]) -> list[FilesReport]:
    """The reports of a job, in the order of task numbers."""
    reports = [msgspec.msgpack.decode(row, type=FilesReport) for row in rows]
    return sorted(reports, key=lambda report: report.task)
