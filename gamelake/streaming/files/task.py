"""What happens inside a Spark task: names of objects in, files of rows, accounts and one report out."""

from collections import Counter
from collections.abc import Iterator, Sequence
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

# One reader for all tasks that a worker process runs: its schema is compiled once.
_readers: dict[tuple[str, int], FileReader] = {}


class FilesReport(msgspec.Struct, frozen=True, kw_only=True):
    """One chunk of one task, and what became of the objects that ended in it."""

    parcel: int
    report: TaskReport
    accounts: tuple[ObjectResult, ...]


@dataclass(frozen=True, slots=True)
class FilesTask:
    """The function that Spark maps over the parcels of a batch (`mapInArrow`)."""

    plan: FilesPlan

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read and write all objects of a partition's parcels; yield one packed report per chunk."""
        for batch in batches:
            for row in batch.column(0).to_pylist():
                for report in _ParcelRun(self.plan, decode_task_input(row)).reports():
                    yield _pack(report)


@dataclass
class _ParcelRun:
    """One parcel on its way through a chunk."""

    plan: FilesPlan
    parcel: TaskInput
    _refused: list[RefusedObject] = field(default_factory=list)
    _counts: Counter[int] = field(default_factory=Counter)
    _dead: Counter[int] = field(default_factory=Counter)

    def reports(self) -> Iterator[FilesReport]:
        """Read everything; the accounts stand in the last report."""
        reading = self.plan.reading
        chunk = Chunk(reading, self._filter(reading))
        objects = self.parcel.objects
        where = object_coordinates([(each.place, each.name) for each in objects])
        for letter in self.parcel.letters:
            _send(chunk, letter)
        for rows in _reader(self.plan).read(self._files()):
            if isinstance(rows, UnreadableFile):
                self._refused.append(RefusedObject(rows.place, DeadLetterReason.UNREADABLE_FILE, rows.detail))
                continue
            self._take(chunk, where.records(rows.events.values, rows.places, rows.numbers), rows)
            if chunk.is_full():
                yield FilesReport(parcel=self.parcel.number, report=chunk.flush(), accounts=())
        for refused in self._refused:
            if refused.reason is not None:
                _send(chunk, _letter(objects[refused.place], refused.reason, refused.detail))
        yield FilesReport(parcel=self.parcel.number, report=chunk.flush(), accounts=tuple(self._accounts()))

    def _filter(self, reading: TaskPlan) -> DuplicateFilter:
        if self.plan.twins is None:
            return NoOpDuplicateFilter()
        router = Router(reading.contract, reading.unlisted_tables)
        return SilverDuplicateFilter(self.plan.twins, Store(reading.lakehouse), router, self.parcel.claimed)

    def _take(self, chunk: Chunk, records: pa.RecordBatch, rows: FileRows) -> None:
        self._counts.update(_counted(rows.places))
        bad = np.array(rows.events.rejects.rows, np.int64)
        if not len(bad):
            chunk.take(records)
            return
        self._dead.update(_counted(rows.places[bad]))
        rejects = rows.events.rejects
        chunk.add_dead_letters(
            records.take(pa.array(bad)), Rejects(list(range(len(bad))), rejects.reasons, self._where(rows, bad))
        )
        good = np.setdiff1d(np.arange(len(records)), bad)
        if len(good):
            chunk.take(records.take(pa.array(good)))

    def _where(self, rows: FileRows, bad: np.ndarray) -> list[str]:
        """The details of rejects, each with the object and the row that it stands in."""
        objects = self.parcel.objects
        return [
            f"row {rows.numbers[row] + 1} of {objects[rows.places[row]].name.key}: {detail}"
            for row, detail in zip(bad, rows.events.rejects.details, strict=True)
        ]

    def _files(self) -> Iterator[FileContent]:
        """The files that can be read; of the others it is noted why not."""
        fetcher = Fetcher(LandingBucket(self.plan.landing), self.plan.limits, self.plan.readers)
        for each in fetcher.files(self.parcel.objects):
            if isinstance(each, RefusedObject):
                self._refused.append(each)
            else:
                yield each

    def _accounts(self) -> Iterator[ObjectResult]:
        refused = {each.place: each for each in self._refused}
        for place, each in enumerate(self.parcel.objects):
            no = refused.get(place)
            outcome = (
                ObjectOutcome.TAKEN
                if no is None
                else ObjectOutcome.DEAD_LETTER
                if no.reason
                else ObjectOutcome.SUPERSEDED
            )
            lost = int(outcome is ObjectOutcome.DEAD_LETTER)
            yield ObjectResult(
                place=each.place,
                name=each.name,
                outcome=outcome,
                bytes=each.size,
                records=self._counts[place] + lost,
                dead_letters=self._dead[place] + lost,
                overwrites=each.overwrites,
            )
        for letter in self.parcel.letters:
            yield ObjectResult(
                place=letter.place, name=letter.name, outcome=ObjectOutcome.DEAD_LETTER, records=1, dead_letters=1
            )


def _counted(places: np.ndarray) -> dict[int, int]:
    found, counts = np.unique(places, return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))


def _letter(named: NamedObject, reason: DeadLetterReason, detail: str) -> RejectedNotification:
    return RejectedNotification(place=named.place, name=named.name, value=named.value, reason=reason, detail=detail)


def _send(chunk: Chunk, letter: RejectedNotification) -> None:
    where = object_coordinates([(letter.place, letter.name)])
    zero = np.zeros(1, np.int64)
    record = where.records(pa.array([letter.value], pa.binary()), zero, zero)
    chunk.add_dead_letters(record, Rejects([0], [letter.reason], [letter.detail]))


def _reader(plan: FilesPlan) -> FileReader:
    key = (plan.reading.lakehouse.uri, plan.schema_id)
    if key not in _readers:
        cache = SchemaCache(
            SchemaRegistry(plan.reading.registry_url), Store(plan.reading.lakehouse), plan.reading.schema_wait
        )
        schema = cache.get(plan.schema_id)
        if isinstance(schema, MissingSchema):
            raise StoreError(f"schema {plan.schema_id}, by which files are read, can't be had: {schema.detail}")
        _readers[key] = FileReader(message_at(schema, FIRST_MESSAGE), plan.schema_id)
    return _readers[key]


def unpack(rows: Sequence[bytes]) -> list[FilesReport]:
    """The reports of a job, by parcel."""
    reports = [msgspec.msgpack.decode(row, type=FilesReport) for row in rows]
    return sorted(reports, key=lambda report: report.parcel)


def _pack(report: FilesReport) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([msgspec.msgpack.encode(report)], pa.binary())], names=["report"])
