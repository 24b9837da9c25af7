"""Runs fan-out tasks on Arrow batches, without Spark, Kafka or a registry, and reads what they wrote."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Self, TypeAlias, cast

import pyarrow as pa
import pyarrow.parquet as pq
from google.protobuf import json_format
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message_factory import GetMessageClass

from gamelake.contract.games import GamesContract, GameSpec
from gamelake.delta.data_files import DataFile
from gamelake.delta.table_files import TableFiles
from gamelake.layers.bronze import RECORD_SCHEMA, Headers, header_lists
from gamelake.model.naming import BRONZE_EVENTS, DEAD_LETTERS, SILVER_EVENTS
from gamelake.objects.store import Location, Store
from gamelake.schemas.compiler import compile_sources, message_at
from gamelake.schemas.schema_cache import schema_path
from gamelake.streaming.driver.decision import Decider, Decision, Parallelism
from gamelake.streaming.kafka.batch_records import RecordTask, results_of
from gamelake.streaming.kafka.consumers import PartitionRange
from gamelake.streaming.kafka.source import PlannedOffsets
from gamelake.streaming.plan import TaskPlan, TaskReport, WrittenFile, decode_reports
from gamelake.streaming.tasks.task import FanOutTask

# One JSON object: an event, or a row as read back.
Json: TypeAlias = dict[str, Any]

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
KART = GameSpec(name="kart_rumble", match=("Kart Rumble",))
YETI = GameSpec(name="yeti_ski", match=("Yeti Ski",))
GAMES = GamesContract(games=(KART, YETI))
KART_TABLE, YETI_TABLE = KART.table, YETI.table
_PLATFORM_TABLES = (BRONZE_EVENTS, SILVER_EVENTS, DEAD_LETTERS)
_FIRST_ID = 40
NEWEST_VERSION = 4


def schema_id(version: int) -> int:
    """The id under which a version of the game event is registered in these tests."""
    return _FIRST_ID + version


@cache
def game_event_schema(version: int) -> FileDescriptorSet:
    text = Path(f"contracts/proto/v{version}/game_event.proto").read_text(encoding="utf-8")
    return compile_sources({"schema.proto": text})


@cache
def compiled(text: str) -> FileDescriptorSet:
    return compile_sources({"schema.proto": text})


def framed(event: Json, schema: FileDescriptorSet, under: int) -> bytes:
    """Encode an event given as JSON, by the first message of a schema that is registered under an id."""
    message = json_format.ParseDict(event, GetMessageClass(message_at(schema, (0,)))())
    return b"\0" + under.to_bytes(4, "big") + b"\0" + bytes(message.SerializeToString())


def an_event(**changes: object) -> Json:
    """Give a good event of version 1, with changes; a field that is set to None is left out."""
    event: Json = {
        "eventId": "0b9c7c0e-6a55-4a86-8d1c-0a8b8a3a7a10",
        "eventName": "level_completed",
        "eventTime": "2026-01-01T11:59:00Z",
        "gameName": "Kart Rumble",
        "gamerId": "p-1",
    }
    return {name: value for name, value in (event | changes).items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class KafkaTaskRecord:
    """One Kafka record as a task gets it."""

    value: bytes | None
    partition: int = 0
    offset: int = 0
    timestamp: datetime = NOON
    key: bytes | None = b"p-1"
    headers: Headers | None = None


def a_record(version: int = 1, *, offset: int = 0, **changes: object) -> KafkaTaskRecord:
    return KafkaTaskRecord(
        value=framed(an_event(**changes), game_event_schema(version), schema_id(version)), offset=offset
    )


def a_spoiled_record(*, offset: int = 0) -> KafkaTaskRecord:
    return KafkaTaskRecord(value=b"\0" + schema_id(1).to_bytes(4, "big") + b"\0\xff", offset=offset)


def numbered(records: Iterable[KafkaTaskRecord]) -> list[KafkaTaskRecord]:
    """The records one after the other in their partition."""
    return [replace(record, offset=offset) for offset, record in enumerate(records)]


def as_batch(records: Sequence[KafkaTaskRecord]) -> pa.RecordBatch:
    columns = [[getattr(record, name) for record in records] for name in RECORD_SCHEMA.names]
    arrays = [
        header_lists(values) if each.name == "headers" else pa.array(values, each.type)
        for values, each in zip(columns, RECORD_SCHEMA, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=RECORD_SCHEMA)


@dataclass
class TaskOutcome:
    """What a task reported, and the rows it wrote."""

    store: Store
    reports: list[TaskReport] = field(default_factory=list)

    @property
    def files(self) -> list[WrittenFile]:
        return [file for report in self.reports for file in report.files]

    @property
    def dead_letters(self) -> Counter[str]:
        """The number of dead letters by reason."""
        return sum((Counter(report.dead_letters) for report in self.reports), Counter[str]())

    @property
    def records(self) -> int:
        """The number of records that the task has read."""
        return sum(taken.records for report in self.reports for taken in report.offsets)

    @property
    def game_tables(self) -> set[str]:
        """The tables of games that got rows."""
        return {file.table for file in self.files} - set(_PLATFORM_TABLES)

    def count(self, table: str) -> int:
        """Rows of a table, as reported."""
        return sum(file.file.rows for file in self.files if file.table == table)

    def rows(self, table: str) -> list[Json]:
        """Give the rows of a table, with their partition values, by offset."""
        rows = [row for file in self.files if file.table == table for row in self._rows_of(file)]
        return sorted(rows, key=lambda row: (row.get("kafka_offset", row.get("offset")), str(row)))

    def columns(self, table: str) -> set[str]:
        """Names of all columns that a table got."""
        schemas = [pa.ipc.read_schema(pa.py_buffer(file.columns)) for file in self.files if file.table == table]
        return {name for schema in schemas for name in schema.names}

    def _rows_of(self, file: WrittenFile) -> list[Json]:
        return _rows_of_file(self.store, file.table, file.file)


def rows_of(store: Store, tables: Sequence[TableFiles], table: str) -> list[Json]:
    """Give the rows that a decision adds to a table, with their partition values."""
    files = [file for entry in tables if entry.table == table for file in entry.files]
    return [row for file in files for row in _rows_of_file(store, table, file)]


def _rows_of_file(store: Store, table: str, file: DataFile) -> list[Json]:
    content = store.get(f"{table}/{file.path}")
    assert content is not None
    assert len(content) == file.size
    rows = pq.read_table(pa.BufferReader(content))
    assert rows.num_rows == file.rows
    return [row | file.partition for row in rows.to_pylist()]


@dataclass(frozen=True, slots=True)
class RecordsInProcess:
    """The records of a batch, whose tasks run one after the other in this process: one for each list of records."""

    tasks: Sequence[Sequence[KafkaTaskRecord]]
    spark: Any = None

    def reports(self, task: RecordTask, tasks: int) -> list[bytes]:
        del tasks
        results = (results for records in self.tasks for results in results_of(task, iter([as_batch(records)])))
        return [row for each in results for row in each.column("report").to_pylist()]

    def part(self, ranges: Sequence[PartitionRange]) -> Self:
        return replace(
            self,
            tasks=[
                [
                    each
                    for records in self.tasks
                    for each in records
                    if any(part.partition == each.partition and part.start <= each.offset < part.end for part in ranges)
                ]
            ],
        )

    @property
    def planned(self) -> PlannedOffsets:
        ends: dict[int, int] = {}
        for each in (record for records in self.tasks for record in records):
            ends[each.partition] = max(ends.get(each.partition, 0), each.offset + 1)
        return PlannedOffsets(dict.fromkeys(ends, 0), ends)


@dataclass
class TaskLakehouse:
    """A lakehouse that knows the schemas of the game event, so that no task asks a registry.

    Attributes:
        stored_at: its location, if it is not in the folder.
    """

    folder: Path
    contract: GamesContract = GAMES
    stored_at: Location | None = None

    def __post_init__(self) -> None:
        """Open the folder and put the versions of the contract into it."""
        self.location = self.stored_at or Location(uri=self.folder.as_uri())
        self.store = Store(self.location)
        for version in range(1, NEWEST_VERSION + 1):
            self.register(schema_id(version), game_event_schema(version))

    def register(self, under: int, schema: FileDescriptorSet) -> None:
        """Make a schema known under an id."""
        self.store.put(schema_path(under), schema.SerializeToString())

    def plan(self, **changes: object) -> TaskPlan:
        return TaskPlan(
            lakehouse=self.location,
            registry_url="http://registry.invalid",
            topic="events",
            contract=self.contract,
            **changes,  # type: ignore[arg-type] # checked by the plan itself
        )

    def decide(
        self, tasks: Sequence[Sequence[KafkaTaskRecord]], schemas: Mapping[str, pa.Schema] | None = None
    ) -> Decision:
        """Decide a batch by a driver that knows the columns of some tables; one task for each list of records."""
        records = RecordsInProcess(tasks)
        decider = Decider(self.plan(), dict(schemas or {}), Parallelism(len(tasks), 1))
        return decider.decide(cast("Any", records), records.planned)

    def run(self, records: Sequence[KafkaTaskRecord], *, batch_records: int = 1_000, **plan: object) -> TaskOutcome:
        """Run one task over records, handed to it in batches of `batch_records`."""
        task = FanOutTask(self.plan(**plan))
        batches = (as_batch(records[at : at + batch_records]) for at in range(0, len(records), batch_records))
        reports = (row for batch in task(batches) for row in batch.column("report").to_pylist())
        return TaskOutcome(self.store, decode_reports(reports))
