"""Deciding a batch: run its tasks, join what they report, and agree on every table's columns."""

import logging
from collections import Counter
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame

from gamelake.errors import IncompatibleSchemaError
from gamelake.fanout.offsets import PlannedOffsets, taken_offsets
from gamelake.fanout.plan import TaskPlan
from gamelake.fanout.report import REPORT_SCHEMA, TaskReport, WrittenFile, joined_offsets, unpack
from gamelake.fanout.task import FanOutTask
from gamelake.lake.evolution import merged
from gamelake.lake.manifest import OffsetRange, TableFiles
from gamelake.lake.tables import delta_schema_json
from gamelake.naming import game_of

log = logging.getLogger(__name__)

_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Decision:
    """What a batch holds, before it is written down."""

    offsets: tuple[OffsetRange, ...]
    tables: tuple[TableFiles, ...]
    dead_letters: dict[str, int]

    @property
    def records(self) -> int:
        """Kafka records that were read."""
        return sum(taken.records for taken in self.offsets)


@dataclass(frozen=True, slots=True)
class Parallelism:
    """How many tasks a batch is worth: few files for small batches, all cores for large ones."""

    cores: int
    records_per_task: int

    def tasks(self, records: int) -> int:
        """Tasks for so many records."""
        return max(1, min(self.cores, -(-records // self.records_per_task)))


class Decider:
    """Runs the fan-out's tasks; remembers the tables' columns from batch to batch."""

    def __init__(self, plan: TaskPlan, schemas: dict[str, pa.Schema], parallelism: Parallelism) -> None:
        self._plan = plan
        self._schemas = schemas
        self._parallelism = parallelism

    def decide(self, records: DataFrame, planned: PlannedOffsets) -> Decision:
        """Read and write all records of a batch; commit nothing.

        Raises:
            IncompatibleSchemaError: the tasks could not agree on a table's columns.
            OffsetGapError: the records are not the ones that the batch planned to read.
        """
        for _ in range(_ATTEMPTS):
            reports = self._run(records, planned)
            try:
                tables = self._tables([file for report in reports for file in report.files])
            except IncompatibleSchemaError as error:
                # Two tasks met two new columns of one name and two types. The lower schema id has won and is
                # known now, so in another run the other's records go to the dead letters.
                log.warning("running the batch again: %s", error)
                conflict = error
                continue
            offsets = joined_offsets(taken for report in reports for taken in report.offsets)
            dead_letters = sum((Counter(report.dead_letters) for report in reports), Counter[str]())
            return Decision(taken_offsets(planned, offsets), tables, dict(sorted(dead_letters.items())))
        raise conflict

    def _run(self, records: DataFrame, planned: PlannedOffsets) -> list[TaskReport]:
        schemas = {table: schema for table, schema in self._schemas.items() if game_of(table)}
        listed = {game.table for game in self._plan.contract.games}
        plan = replace(self._plan, schemas=schemas, unlisted_tables=frozenset(schemas.keys() - listed))
        tasks = records.coalesce(self._parallelism.tasks(planned.records))
        return unpack(bytes(row.report) for row in tasks.mapInArrow(FanOutTask(plan), REPORT_SCHEMA).collect())

    def _tables(self, files: list[WrittenFile]) -> tuple[TableFiles, ...]:
        by_table: dict[str, list[WrittenFile]] = {}
        for file in sorted(files, key=lambda file: (file.table, file.schema_id)):
            by_table.setdefault(file.table, []).append(file)
        for table, written in by_table.items():
            for columns in dict.fromkeys(file.columns for file in written):
                self._widen(table, pa.ipc.read_schema(pa.py_buffer(columns)))
        return tuple(
            TableFiles(
                table=table,
                partition_by=written[0].partition_by,
                schema=delta_schema_json(self._schemas[table]),
                files=tuple(file.file for file in written),
            )
            for table, written in by_table.items()
        )

    def _widen(self, table: str, columns: pa.Schema) -> None:
        known = self._schemas.get(table)
        self._schemas[table] = columns if known is None else merged(known, columns)
