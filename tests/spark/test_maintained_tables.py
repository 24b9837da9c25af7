"""After long maintenance a table is the same to every engine, with the events that were sent."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import QueryBuilder
from pyspark.sql import SparkSession

from gamelake.delta.tables import open_table
from gamelake.model.naming import SILVER_EVENTS
from gamelake.objects.store import Location
from gamelake.serving.sql.duckdb import answer
from gamelake.serving.sql.relations import Reads
from tests.support.delta_validator import problems
from tests.support.maintained_tables import CLONE, COLUMNS, MaintainedSilver, Row, as_read, new_maintained_table, rows

ASKED = ", ".join(COLUMNS)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> MaintainedSilver:
    return new_maintained_table(Location(uri=tmp_path_factory.mktemp("lake").as_uri()))


def tuples(found: pa.Table) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in found.to_pylist()]


def by_engine(spark: SparkSession, table: MaintainedSilver, path: str) -> dict[str, Counter[Row]]:
    name = path.replace("/", ".")
    in_spark = spark.read.format("delta").load(table.location.child(path)).select(*COLUMNS).collect()
    in_rust = QueryBuilder().register("asked", open_table(table.location, path)).execute(f"SELECT {ASKED} FROM asked")  # noqa: S608
    in_duckdb = answer(f"SELECT {ASKED} FROM {name}", Reads(frozenset({name}), ()), table.location)  # noqa: S608
    found = {
        "Spark": [tuple(row) for row in in_spark],
        "delta-rs": tuples(pa.table(in_rust.read_all())),
        "DuckDB": tuples(in_duckdb),
    }
    return {engine: as_read(each) for engine, each in found.items()}


def test_a_table_after_long_maintenance_is_the_same_to_every_engine(
    spark: SparkSession, table: MaintainedSilver
) -> None:
    found = by_engine(spark, table, SILVER_EVENTS)

    assert table.events
    assert found == dict.fromkeys(found, rows(table.events))


def test_its_clone_is_the_same_to_every_engine(spark: SparkSession, table: MaintainedSilver) -> None:
    found = by_engine(spark, table, CLONE)

    assert table.cloned
    assert found == dict.fromkeys(found, rows(table.cloned))


@pytest.mark.slow
def test_it_is_so_after_an_optimize_of_sparks_own_and_more_batches(
    spark: SparkSession, table: MaintainedSilver
) -> None:
    table.batches(3)
    path = table.location.child(SILVER_EVENTS)
    spark.sql(f"OPTIMIZE delta.`{path}`")
    table.batches(3)

    found = by_engine(spark, table, SILVER_EVENTS)

    assert found == dict.fromkeys(found, rows(table.events))
    versions = [row.version for row in spark.sql(f"DESCRIBE HISTORY delta.`{path}`").collect()]
    assert versions == [entry["version"] for entry in open_table(table.location, SILVER_EVENTS).history()]
    assert problems(Path(table.location.uri.removeprefix("file://"))) == []
