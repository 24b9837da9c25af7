"""A batch of many tasks: the rows of small files are merged, so that a table gets no file for each task."""

from collections import Counter
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from gamelake.delta.tables import DeltaTables
from gamelake.model.naming import shuffle_folder
from gamelake.objects.store import Store
from gamelake.streaming.driver.decision import Decision
from tests.spark.records import KnownSchemas, PlannedRecord, as_frame, commit, planned

GAMES = ("Archery", "Bingo", "Curling")
TASKS = 5


@pytest.fixture
def schemas(tmp_path: Path) -> KnownSchemas:
    return KnownSchemas(tmp_path)


def decide(spark: SparkSession, schemas: KnownSchemas, values: list[bytes], tasks: int = TASKS) -> Decision:
    """Decide a batch of records by a number of tasks, and commit it."""
    records = [PlannedRecord(n, value) for n, value in enumerate(values)]
    with DeltaTables(schemas.location) as tables:
        decider = schemas.decider(tables, tasks=tasks, shuffle=shuffle_folder("ingest_events"))
        decision = decider.decide(as_frame(spark, records, tasks), planned(records))
        commit(tables, decision, 0)
    return decision


def ids(schemas: KnownSchemas, table: str) -> Counter[str]:
    """The ids of a table's events."""
    return Counter(DeltaTable(schemas.folder / table).to_pyarrow_table(columns=["event_id"])["event_id"].to_pylist())


def test_each_table_has_one_file_and_each_record_is_a_row_or_a_dead_letter(
    spark: SparkSession, schemas: KnownSchemas
) -> None:
    plain = schemas.add()
    values = [schemas.value(plain, f"e{n}", GAMES[n % 3]) for n in range(90)]

    decision = decide(spark, schemas, [*values, b"poison", b""])

    assert {entry.table: (entry.rows, len(entry.files)) for entry in decision.tables} == {
        "bronze/events": (92, 1),
        "silver/events": (90, 1),
        "silver/archery_events": (30, 1),
        "silver/bingo_events": (30, 1),
        "silver/curling_events": (30, 1),
        "dead_letters/events": (2, 1),
    }
    assert decision.records == 92
    assert decision.dead_letters == {"bad_framing": 2}
    assert ids(schemas, "silver/events") == Counter(f"e{n}" for n in range(90))
    assert {entry.schema_ids for entry in decision.tables if entry.table.startswith("silver/")} == {(plain,)}


def test_nothing_is_left_of_what_tasks_hand_over_to_others(spark: SparkSession, schemas: KnownSchemas) -> None:
    plain = schemas.add()

    decide(spark, schemas, [schemas.value(plain, f"e{n}", "Archery") for n in range(20)])

    assert Store(schemas.location).paths(shuffle_folder("ingest_events")) == []


def test_few_tasks_write_their_files_themselves(spark: SparkSession, schemas: KnownSchemas) -> None:
    plain = schemas.add()

    decision = decide(spark, schemas, [schemas.value(plain, f"e{n}", "Archery") for n in range(30)], tasks=3)

    assert {len(entry.files) for entry in decision.tables} == {3}


def test_a_table_has_the_columns_that_different_tasks_have_met(spark: SparkSession, schemas: KnownSchemas) -> None:
    one, other = schemas.add("bool boosted = 60;"), schemas.add("string league = 61;")
    values = [schemas.value(one, f"one-{n}", "Archery", event_params={"boosted": True}) for n in range(20)]
    values += [schemas.value(other, f"other-{n}", "Archery", event_params={"league": "gold"}) for n in range(20)]

    decision = decide(spark, schemas, values)

    rows = DeltaTable(schemas.folder / "silver/archery_events").to_pyarrow_table(columns=["boosted", "league"])
    assert Counter(rows["boosted"].to_pylist())[True] == Counter(rows["league"].to_pylist())["gold"] == 20
    [archery] = [entry for entry in decision.tables if entry.table == "silver/archery_events"]
    assert (len(archery.files), archery.schema_ids) == (1, (one, other))


def test_tasks_that_disagree_on_a_column_are_run_again_and_the_older_schema_wins(
    spark: SparkSession, schemas: KnownSchemas
) -> None:
    as_flag, as_text = schemas.add("bool boosted = 60;"), schemas.add("string boosted = 61;")
    values = [schemas.value(as_text, f"text-{n}", "Archery") for n in range(20)]
    values += [schemas.value(as_flag, f"flag-{n}", "Archery") for n in range(20)]

    decision = decide(spark, schemas, values)

    assert decision.dead_letters == {"incompatible_schema": 20}
    assert ids(schemas, "silver/archery_events") == Counter(f"flag-{n}" for n in range(20))
    assert Store(schemas.location).paths(shuffle_folder("ingest_events")) == []
