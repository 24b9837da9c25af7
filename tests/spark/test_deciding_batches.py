"""What the fan-out's tasks report to the driver, and what the driver makes of it."""

from collections import Counter
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from gamelake.model.errors import OffsetGapError, SplitPartitionError
from gamelake.storage.store import Store
from gamelake.storage.tables import DeltaTables
from gamelake.streaming.dedup_window import DedupLimits, DedupWindow
from gamelake.streaming.kafka_source import PlannedOffsets
from tests.spark.records import KnownSchemas, PlannedRecord, as_frame, commit, planned


@pytest.fixture
def schemas(tmp_path: Path) -> KnownSchemas:
    return KnownSchemas(tmp_path)


def test_every_record_of_every_task_is_a_row_or_a_dead_letter(spark: SparkSession, schemas: KnownSchemas) -> None:
    plain = schemas.add()
    values = [schemas.value(plain, f"e{n}", ("Archery", "Bingo", "Curling")[n % 3]) for n in range(90)]
    records = [PlannedRecord(n, value) for n, value in enumerate([*values, b"poison", b""])]

    with DeltaTables(schemas.location) as tables:
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

    with DeltaTables(schemas.location) as tables:
        decision = schemas.decider(tables, tasks=1).decide(as_frame(spark, records, 4), planned(records))

    assert {len(entry.files) for entry in decision.tables} == {1}


def test_two_tasks_that_disagree_on_a_column_are_run_again_and_the_older_schema_wins(
    spark: SparkSession, schemas: KnownSchemas
) -> None:
    as_flag, as_text = schemas.add("bool boosted = 60;"), schemas.add("string boosted = 61;")
    first = [PlannedRecord(n, schemas.value(as_text, f"text-{n}", "Archery")) for n in range(10)]
    second = [PlannedRecord(n + 10, schemas.value(as_flag, f"flag-{n}", "Archery")) for n in range(10)]
    records = first + second

    with DeltaTables(schemas.location) as tables:
        decision = schemas.decider(tables).decide(as_frame(spark, records), planned(records))
        commit(tables, decision, 0)

    assert decision.dead_letters == {"incompatible_schema": 10}
    ids = DeltaTable(schemas.folder / "silver/archery_events").to_pyarrow_table(columns=["event_id"])["event_id"]
    assert Counter(ids.to_pylist()) == Counter(f"flag-{n}" for n in range(10))


def test_records_outside_the_plan_stop_the_batch(spark: SparkSession, schemas: KnownSchemas) -> None:
    plain = schemas.add()
    records = [PlannedRecord(n, schemas.value(plain, f"e{n}", "Archery")) for n in range(10)]

    with DeltaTables(schemas.location) as tables, pytest.raises(OffsetGapError, match="planned were 0 to 4"):
        schemas.decider(tables).decide(as_frame(spark, records), PlannedOffsets({0: 0}, {0: 5}))


def test_a_batch_that_is_committed_twice_is_there_once(spark: SparkSession, schemas: KnownSchemas) -> None:
    plain = schemas.add()
    records = [PlannedRecord(n, schemas.value(plain, f"e{n}", "Archery")) for n in range(10)]

    with DeltaTables(schemas.location) as tables:
        decision = schemas.decider(tables).decide(as_frame(spark, records), planned(records))
        commit(tables, decision, 0)
        commit(tables, decision, 0)

    assert DeltaTable(schemas.folder / "silver/archery_events").count() == 10


def test_an_event_that_comes_twice_is_one_row_and_counted(spark: SparkSession, schemas: KnownSchemas) -> None:
    plain = schemas.add()
    records = [PlannedRecord(n, schemas.value(plain, f"e{n % 10}", ("Archery", "Bingo")[n % 2])) for n in range(30)]
    window = DedupWindow(Store(schemas.location), "events", DedupLimits())

    with DeltaTables(schemas.location) as tables:
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

    with DeltaTables(schemas.location) as tables, pytest.raises(SplitPartitionError, match="partition 0"):
        schemas.decider(tables).decide(as_frame(spark, records), planned(records), window.plan("seed", 0))
