"""Comments of tables and columns are visible to Spark, and every writer keeps them."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from gamelake.contract.games import load_games
from gamelake.delta.tables import DeltaTables
from gamelake.layers.comments import EventComments
from gamelake.objects.store import Store
from tests.spark.records import KnownSchemas, PlannedRecord, as_frame, commit, planned

CONTRACT = load_games(Path("contracts/games.yaml"))
TABLE = "silver/archery_events"


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Path:
    """Two batches, the second of which brings a new column."""
    schemas = KnownSchemas(tmp_path)
    for batch, field in enumerate(("", "// How lucky.\nint32 luck = 60;")):
        schema_id = schemas.add(field)
        with DeltaTables(schemas.location, EventComments(CONTRACT, Store(schemas.location))) as tables:
            records = [PlannedRecord(batch, schemas.value(schema_id, f"e{batch}", "Archery"))]
            decider = schemas.decider(tables, [TABLE] if batch else [])
            commit(tables, decider.decide(as_frame(spark, records, 1), planned(records)), batch)
    return tmp_path


def comments(spark: SparkSession, path: Path) -> dict[str, str]:
    rows = spark.sql(f"DESCRIBE TABLE delta.`{path}`").collect()
    return {row.col_name: row.comment for row in rows if row.comment}


@pytest.mark.slow
def test_spark_shows_what_the_columns_of_a_new_table_and_new_columns_mean(spark: SparkSession, lake: Path) -> None:
    shown = comments(spark, lake / TABLE)

    assert shown["client_event_time"] == "When it happened, by the device's clock: not to be trusted."
    assert shown["event_date"].startswith("the day of event_time")
    assert shown["luck"] == "How lucky."
    [description] = spark.sql(f"DESCRIBE DETAIL delta.`{lake / TABLE}`").select("description").collect()
    assert description[0] == "Events of archery, with all that its messages have."


def test_the_next_writer_keeps_the_comments_of_columns(spark: SparkSession, lake: Path) -> None:
    path = lake / TABLE
    before = comments(spark, path)
    rows = DeltaTable(path).to_pyarrow_table()

    write_deltalake(path, rows, mode="append")
    spark.read.format("delta").load(str(path)).limit(1).write.format("delta").mode("append").save(str(path))
    spark.sql(f"OPTIMIZE delta.`{path}`")

    assert comments(spark, path) == before
    assert DeltaTable(path).to_pyarrow_table().num_rows == 5
    assert pa.schema(DeltaTable(path).schema()).names == rows.schema.names
