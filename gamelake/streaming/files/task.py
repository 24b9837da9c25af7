"""The Spark task of a stream of files: reads objects, writes data files, and reports the result of each object."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
import pyarrow as pa

from gamelake.layers.routing import Router
from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.model.worker_cache import per_worker
from gamelake.objects.store import Store
from gamelake.schemas.decoder import Rejects
from gamelake.streaming.dedup.duplicates import DuplicateFilter
from gamelake.streaming.dedup.ingested import OtherSources
from gamelake.streaming.dedup.worker_memory import worker_memory
from gamelake.streaming.files.arrivals.landing import LandingBucket
from gamelake.streaming.files.coordinates import object_coordinates
from gamelake.streaming.files.fetching import Fetcher
from gamelake.streaming.files.file_schema import file_reader
from gamelake.streaming.files.ledger import ObjectOutcome, ObjectResult
from gamelake.streaming.files.plan import FilesPlan, NamedObject, RejectedNotification, TaskInput, decode_task_input
from gamelake.streaming.files.reading import FileReader, FileRows, StoredFile
from gamelake.streaming.files.refusals import RefusedObject
from gamelake.streaming.files.silver_ids import SilverEvents
from gamelake.streaming.plan import TaskPlan, TaskReport
from gamelake.streaming.tasks.task import Chunk

# If an object can't be read, this many other objects show if the store answers.
_PROBED = 3


class FilesReport(msgspec.Struct, frozen=True, kw_only=True):
    """The report of one chunk of one task.

    Attributes:
        task: the number of the task.
        report: of the chunk.
        results: one for each object and each rejected notification of the task, in the report of the last chunk.
    """

    task: int
    report: TaskReport
    results: tuple[ObjectResult, ...]


@dataclass(frozen=True, slots=True)
class FilesTask:
    """The function that Spark maps over the task inputs of a batch (`mapPartitions`).

    Attributes:
        plan: of the batch.
    """

    plan: FilesPlan

    def __call__(self, inputs: Iterable[bytes]) -> Iterator[bytes]:
        """Read the objects of each encoded task input; yield a report per chunk, in MessagePack."""
        for encoded in inputs:
            for report in _TaskRun(self.plan, decode_task_input(encoded)).reports():
                yield msgspec.msgpack.encode(report)


@dataclass
class _TaskRun:
    """The run of one task input.

    Attributes:
        plan: of the batch.
        task: the input.
    """

    plan: FilesPlan
    task: TaskInput
    _refused: list[RefusedObject] = field(default_factory=list)
    _counts: Counter[int] = field(default_factory=Counter)
    _dead: Counter[int] = field(default_factory=Counter)

    def reports(self) -> Iterator[FilesReport]:
        """Read all objects, and yield a report per chunk; the last report has the results of the objects."""
        reading = self.plan.reading
        chunk = Chunk(reading, self._filter(reading))
        objects = self.task.objects
        where = object_coordinates([(each.position, each.name) for each in objects])
        for rejected in self.task.rejected:
            _dead_letter(chunk, rejected)
        for rows in _reader(self.plan).read(self._files()):
            if isinstance(rows, RefusedObject):
                self._refused.append(rows)
                continue
            for report in self._take(chunk, where.records(rows.events.values, rows.indexes, rows.numbers), rows):
                yield FilesReport(task=self.task.number, report=report, results=())
        for refused in self._refused:
            if refused.reason is not None:
                _dead_letter(chunk, _rejected(objects[refused.index], refused.reason, refused.detail))
        yield FilesReport(task=self.task.number, report=chunk.flush(), results=tuple(self._results()))

    def _filter(self, reading: TaskPlan) -> DuplicateFilter:
        dedup = self.plan.dedup
        if dedup is None:
            return DuplicateFilter()
        store, router = Store(reading.lakehouse), Router(reading.contract, reading.unlisted_tables)
        memory = worker_memory(store, dedup.remembered, {dedup.seed, *(each.seed for each in reading.other_sources)})
        silver = SilverEvents(dedup, store, router, self.task.claimed, memory)
        return DuplicateFilter(silver, OtherSources(reading.other_sources, store, memory))

    def _take(self, chunk: Chunk, records: pa.RecordBatch, rows: FileRows) -> Iterator[TaskReport]:
        self._counts.update(_counted(rows.indexes))
        bad = np.array(rows.events.rejects.rows, np.int64)
        if not len(bad):
            yield from chunk.take(records)
            return
        self._dead.update(_counted(rows.indexes[bad]))
        rejects = rows.events.rejects
        chunk.add_dead_letters(
            records.take(pa.array(bad)), Rejects(list(range(len(bad))), rejects.reasons, self._where(rows, bad))
        )
        good = np.setdiff1d(np.arange(len(records)), bad)
        yield from chunk.take(records.take(pa.array(good)))

    def _where(self, rows: FileRows, bad: np.ndarray) -> list[str]:
        """Return the details of rejected rows, each with its object and row number."""
        objects = self.task.objects
        return [
            f"row {rows.numbers[row] + 1} of {objects[rows.indexes[row]].name.key}: {detail}"
            for row, detail in zip(bad, rows.events.rejects.details, strict=True)
        ]

    def _files(self) -> Iterator[StoredFile]:
        """Yield the files that can be read; add the others to `_refused`."""
        objects = self.task.objects
        landing = LandingBucket(self.plan.landing, [each.name.key for each in objects[:_PROBED]])
        for each in Fetcher(landing, self.plan.limits, self.plan.readers).files(objects):
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
    return per_worker(FileReader, key, lambda: file_reader(plan.reading, plan.schema_id))


def unpack(rows: Sequence[bytes]) -> list[FilesReport]:
    """Decode the reports of a job (MessagePack), and return them in the order of task numbers."""
    reports = [msgspec.msgpack.decode(row, type=FilesReport) for row in rows]
    return sorted(reports, key=lambda report: report.task)
