"""What the fan-out's tasks report to the driver, and what the driver makes of it."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from benchmarks.spark import FrameRecords
from gamelake.delta.table_files import TableFiles
from gamelake.ledger.held_tables import stream_tables
from gamelake.model.errors import OffsetGapError, SplitPartitionError
from gamelake.model.failpoints import Failpoints
from gamelake.objects.store import Store
from gamelake.streaming.dedup.cross_source import NoOpDecisionOrder
from gamelake.streaming.dedup.window import DedupLimits, DedupWindow
from gamelake.streaming.driver.batch import FanOut, OpenStream
from gamelake.streaming.driver.decision import Decision
from gamelake.streaming.driver.flood import FloodBreaker, FloodLimit
from gamelake.streaming.driver.stream import Stream
from gamelake.streaming.kafka.source import PlannedOffsets
from tests.spark.records import KnownSchemas, PlannedRecord, as_frame, commit, planned
from tests.unit.streaming.streams import log_batch


@pytest.fixture
def schemas(tmp_path: Path) -> KnownSchemas:
    return KnownSchemas(tmp_path)


def test_every_record_of_every_task_is_a_row_or_a_dead_letter(spark: SparkSession, schemas: KnownSchemas) -> None:
    plain = schemas.add()
    values = [schemas.value(plain, f"e{n}", ("Archery", "Bingo", "Curling")[n % 3]) for n in range(90)]
    records = [PlannedRecord(n, value) for n, value in enumerate([*values, b"poison", b""])]

    with stream_tables(schemas.location) as tables:
        decision = schemas.decider(tables).decide(as_frame(spark, records, 3), planned(records))

    rows = {entry.table: entry.rows for entry in decision.tables}
    assert rows == {
        "bronze/events": 92,
        "silver/events": 90,
        "silver/archery_events": 30,
        "silver/bingo_events": 30,
        "silver/curling_events": 30,
        "dead_letters/events": 2,
    }
    assert decision.records == 92
    assert decision.dead_letters == {"bad_framing": 2}


def test_a_small_batch_writes_one_file_per_table(spark: SparkSession, schemas: KnownSchemas) -> None:
    plain = schemas.add()
    records = [PlannedRecord(n, schemas.value(plain, f"e{n}", ("Archery", "Bingo")[n % 2])) for n in range(50)]

    with stream_tables(schemas.location) as tables:
        decision = schemas.decider(tables, tasks=1).decide(as_frame(spark, records, 4), planned(records))

    assert {len(entry.files) for entry in decision.tables} == {1}


def test_two_tasks_that_disagree_on_a_column_are_run_again_and_the_older_schema_wins(
    spark: SparkSession, schemas: KnownSchemas
) -> None:
    as_flag, as_text = schemas.add("bool boosted = 60;"), schemas.add("string boosted = 61;")
    first = [PlannedRecord(n, schemas.value(as_text, f"text-{n}", "Archery")) for n in range(10)]
    second = [PlannedRecord(n + 10, schemas.value(as_flag, f"flag-{n}", "Archery")) for n in range(10)]
    records = first + second

    with stream_tables(schemas.location) as tables:
        decision = schemas.decider(tables).decide(as_frame(spark, records), planned(records))
        commit(tables, decision, 0)

    assert decision.dead_letters == {"incompatible_schema": 10}
    ids = DeltaTable(schemas.folder / "silver/archery_events").to_pyarrow_table(columns=["event_id"])["event_id"]
    assert Counter(ids.to_pylist()) == Counter(f"flag-{n}" for n in range(10))


class WidenedMeanwhile(NoOpDecisionOrder):
    """Before the first decision is settled, another writer adds columns to a table."""

    def __init__(self, widen: Callable[[], None]) -> None:
        self._widen: list[Callable[[], None]] = [widen]

    def is_clear(self, tables: Sequence[TableFiles]) -> bool:
        """Widen the table, once."""
        del tables
        while self._widen:
            self._widen.pop()()
        return True


def test_records_that_conflict_with_columns_added_by_another_writer_become_dead_letters(
    spark: SparkSession, schemas: KnownSchemas
) -> None:
    plain, as_number, as_text = schemas.add(), schemas.add("int64 boosted = 60;"), schemas.add("string boosted = 60;")
    stream = Stream(Store(schemas.location), "ingest", "events")
    generation = stream.open("topic-1")

    def records(schema_id: int, name: str) -> list[PlannedRecord]:
        return [PlannedRecord(n, schemas.value(schema_id, f"{name}-{n}", "Archery")) for n in range(5)]

    with stream_tables(schemas.location) as tables, stream_tables(schemas.location) as others:

        def decided(taken: list[PlannedRecord]) -> Decision:
            return schemas.decider(others, ["silver/archery_events"]).decide(as_frame(spark, taken), planned(taken))

        commit(others, decided(records(plain, "before")), 0)
        decider = schemas.decider(tables, ["silver/archery_events"])
        order = WidenedMeanwhile(lambda: commit(others, decided(records(as_text, "text")), 1))
        frames = SimpleNamespace(id=lambda: "topic-1", batch=lambda frame, _: FrameRecords(frame))
        source = OpenStream(stream, generation, tables, cast("Any", frames))
        body = FanOut(source, decider, FloodBreaker(FloodLimit(1, 1)), Failpoints(), order=order)
        log_batch(schemas.folder, generation, 0, {0: 5}, "events")

        body(as_frame(spark, records(as_number, "number")).frame, 0)

    manifest = stream.last_manifest()
    assert manifest is not None
    assert manifest.dead_letters == {"incompatible_schema": 5}
    ids = DeltaTable(schemas.folder / "silver/archery_events").to_pyarrow_table(columns=["event_id"])["event_id"]
    assert Counter(each.split("-")[0] for each in ids.to_pylist()) == {"before": 5, "text": 5}


def test_records_outside_the_plan_stop_the_batch(spark: SparkSession, schemas: KnownSchemas) -> None:
    plain = schemas.add()
    records = [PlannedRecord(n, schemas.value(plain, f"e{n}", "Archery")) for n in range(10)]

    with stream_tables(schemas.location) as tables, pytest.raises(OffsetGapError, match="planned were 0 to 4"):
        schemas.decider(tables).decide(as_frame(spark, records), PlannedOffsets({0: 0}, {0: 5}))


def test_a_batch_that_is_committed_twice_is_there_once(spark: SparkSession, schemas: KnownSchemas) -> None:
    plain = schemas.add()
    records = [PlannedRecord(n, schemas.value(plain, f"e{n}", "Archery")) for n in range(10)]

    with stream_tables(schemas.location) as tables:
        decision = schemas.decider(tables).decide(as_frame(spark, records), planned(records))
        commit(tables, decision, 0)
        commit(tables, decision, 0)

    assert DeltaTable(schemas.folder / "silver/archery_events").count() == 10


def test_an_event_that_comes_twice_is_one_row_and_counted(spark: SparkSession, schemas: KnownSchemas) -> None:
    plain = schemas.add()
    records = [PlannedRecord(n, schemas.value(plain, f"e{n % 10}", ("Archery", "Bingo")[n % 2])) for n in range(30)]
    window = DedupWindow(Store(schemas.location), "events", DedupLimits())

    with stream_tables(schemas.location) as tables:
        frame = as_frame(spark, records, 1)
        decision = schemas.decider(tables).decide(frame, planned(records), window.plan("seed", 0))

    rows = {entry.table: entry.rows for entry in decision.tables}
    assert rows == {"bronze/events": 30, "silver/events": 10, "silver/archery_events": 5, "silver/bingo_events": 5}
    assert decision.duplicates == {"archery": 10, "bingo": 10}
    assert [section.events for file in decision.events for section in file.sections] == [10]


def test_a_kafka_partition_in_two_tasks_is_refused_where_duplicates_matter(
    spark: SparkSession, schemas: KnownSchemas
) -> None:
    plain = schemas.add()
    records = [PlannedRecord(n, schemas.value(plain, f"e{n}", "Archery")) for n in range(20)]
    window = DedupWindow(Store(schemas.location), "events", DedupLimits())

    with stream_tables(schemas.location) as tables, pytest.raises(SplitPartitionError, match="partition 0"):
        schemas.decider(tables).decide(as_frame(spark, records), planned(records), window.plan("seed", 0))
