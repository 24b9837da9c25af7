"""One table, several engines: Spark, deltalake and DuckDB see the same rows, schema and history."""

from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from gamelake.storage.appends import BatchTransaction
from gamelake.storage.data_files import write_rows
from gamelake.storage.manifests import TableFiles
from gamelake.storage.store import Location, Store
from gamelake.storage.tables import DeltaTables, delta_schema_json
from tests.spark.records import KnownSchemas, PlannedRecord, as_frame, commit, planned

TABLES = ("bronze/events", "silver/events", "silver/archery_events", "silver/bingo_events", "dead_letters/events")
Rows = list[tuple[object, ...]]


def with_spark(spark: SparkSession, path: Path, sql: str) -> Rows:
    spark.read.format("delta").load(str(path)).createOrReplaceTempView("lake_table")
    return sorted((tuple(row) for row in spark.sql(sql).collect()), key=repr)


def with_duckdb(_: SparkSession, path: Path, sql: str) -> Rows:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("lake_table", DeltaTable(path).to_pyarrow_dataset())
    return sorted(connection.execute(sql).fetchall(), key=repr)


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Path:
    """Three batches, the last of which brings a new column."""
    schemas = KnownSchemas(tmp_path)
    plain, richer = schemas.add(), schemas.add("repeated string badges = 60;")
    with DeltaTables(schemas.location) as tables:
        for batch, schema_id in enumerate((plain, plain, richer)):
            start = batch * 100
            values = [
                schemas.value(schema_id, f"e{n:04d}", ("Archery", "Bingo")[n % 2]) for n in range(start, start + 99)
            ]
            records = [PlannedRecord(start + n, value) for n, value in enumerate([*values, b"poison"])]
            decision = schemas.decider(tables, TABLES).decide(as_frame(spark, records), planned(records))
            commit(tables, decision, batch)
    return tmp_path


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("engine", [with_spark, with_duckdb])
def test_every_engine_counts_the_same_rows(
    spark: SparkSession, lake: Path, table: str, engine: Callable[[SparkSession, Path, str], Rows]
) -> None:
    expected = DeltaTable(lake / table).to_pyarrow_table().num_rows

    assert engine(spark, lake / table, "SELECT count(*) FROM lake_table") == [(expected,)]


@pytest.mark.parametrize("engine", [with_spark, with_duckdb])
def test_every_engine_reads_the_same_values(
    spark: SparkSession, lake: Path, engine: Callable[[SparkSession, Path, str], Rows]
) -> None:
    columns = ("event_id", "event_name", "game_name", "kafka_offset", "badges")
    rows = DeltaTable(lake / "silver/archery_events").to_pyarrow_table(columns=list(columns)).to_pylist()
    expected = sorted((tuple(row[column] for column in columns) for row in rows), key=repr)

    assert engine(spark, lake / "silver/archery_events", f"SELECT {', '.join(columns)} FROM lake_table") == expected  # noqa: S608


@pytest.mark.parametrize("table", TABLES)
def test_spark_and_deltalake_see_the_same_schema_and_history(spark: SparkSession, lake: Path, table: str) -> None:
    path = lake / table
    by_spark = spark.read.format("delta").load(str(path)).schema
    by_deltalake = pa.schema(DeltaTable(path).schema())

    assert [field.name for field in by_spark] == by_deltalake.names
    versions = [row.version for row in spark.sql(f"DESCRIBE HISTORY delta.`{path}`").collect()]
    assert versions == [entry["version"] for entry in DeltaTable(path).history()]


def test_a_filter_reads_only_the_files_that_can_match(spark: SparkSession, lake: Path) -> None:
    path = lake / "silver/archery_events"
    files = len(DeltaTable(path).file_uris())

    by_spark = spark.read.format("delta").load(str(path)).where("event_id >= 'e0200'").inputFiles()
    # DuckDB hands its filter to the same data set, which skips fragments by the statistics in the log.
    by_arrow = list(DeltaTable(path).to_pyarrow_dataset().get_fragments(filter=pc.field("event_id") >= "e0200"))

    assert 0 < len(by_spark) < files
    assert 0 < len(by_arrow) < files


def test_a_table_that_spark_has_compacted_still_takes_batches(spark: SparkSession, lake: Path) -> None:
    path = lake / "silver/bingo_events"
    before = with_duckdb(spark, path, "SELECT event_id FROM lake_table")
    spark.sql(f"OPTIMIZE delta.`{path}`")
    schemas = KnownSchemas(lake, count=2)
    records = [PlannedRecord(1000 + n, schemas.value(1, f"later{n}", "Bingo")) for n in range(10)]

    with DeltaTables(schemas.location) as tables:
        commit(tables, schemas.decider(tables, TABLES).decide(as_frame(spark, records), planned(records)), 3)

    later: Rows = [(f"later{n}",) for n in range(10)]
    assert with_duckdb(spark, path, "SELECT event_id FROM lake_table") == sorted(before + later)
    assert with_spark(spark, path, "SELECT event_id FROM lake_table") == sorted(before + later)


@pytest.mark.parametrize("engine", [with_spark, with_duckdb])
def test_every_engine_finds_any_text_by_bounds_and_by_partition(
    spark: SparkSession, tmp_path: Path, engine: Callable[[SparkSession, Path, str], Rows]
) -> None:
    texts = ["ios", "a b", "a/b", "50%25", "a%2Fb", "x=y", "日本", "𠮷", "?#", "a:b", "{}[]^*", "+&", "m" * 40]
    columns = pa.schema({"gamer_id": pa.string(), "event_date": pa.date32(), "platform": pa.string()})
    store, partition_by = Store(Location(uri=tmp_path.as_uri())), ("event_date", "platform")
    partitions: list[dict[str, str | None]] = [{"event_date": "2026-01-01", "platform": text} for text in texts]
    partitions.append({"event_date": "2026-01-01", "platform": None})
    files = tuple(
        write_rows(store, "silver/texts", pa.table({"gamer_id": [each["platform"] or "none"]}), each)
        for each in partitions
    )
    schema = delta_schema_json(columns)
    with DeltaTables(store.location) as tables:
        entry = TableFiles(table="silver/texts", partition_by=partition_by, schema=schema, files=files)
        tables.append(entry, BatchTransaction("query-0", 0))

    table = tmp_path / "silver/texts"
    listed = ", ".join(f"'{text}'" for text in texts)
    same = "SELECT count(*) FROM lake_table WHERE gamer_id = platform"
    assert engine(spark, table, same) == [(len(texts),)]
    assert engine(spark, table, f"SELECT count(*) FROM lake_table WHERE platform IN ({listed})") == [(len(texts),)]  # noqa: S608
    assert engine(spark, table, f"SELECT count(*) FROM lake_table WHERE gamer_id IN ({listed})") == [(len(texts),)]  # noqa: S608
    assert engine(spark, table, "SELECT gamer_id FROM lake_table WHERE platform IS NULL") == [("none",)]
