"""Spark reads, compacts and streams a table with a cleaned log as before."""

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from gamelake.delta.log.table_log import TableLog
from gamelake.ledger.reconciliation import reconcile
from gamelake.maintenance.log_cleanup import LogCleanup
from tests.support.player_tables import SILVER
from tests.support.stream_history import TABLES, StreamHistory

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("checkpoints_at_once")]
FIRST, LATER = 60, 20


@pytest.mark.slow
def test_a_table_with_a_cleaned_log_is_the_same_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    history = StreamHistory(tmp_path / "lake")
    since = history.take(FIRST)
    history.take(LATER)
    cleanup = LogCleanup(store=history.store, since=since, keep_manifests=1)
    for plan in list(cleanup.plans([table.name for table in TABLES])):
        plan.carry_out(history.store)
    path = history.store.location.child(SILVER.name)

    def rows(version: int | None = None) -> int:
        reader = spark.read.format("delta")
        return (reader if version is None else reader.option("versionAsOf", version)).load(path).count()

    assert rows() == 2 * (FIRST + LATER)
    assert [rows(version) for version in (49, FIRST, FIRST + LATER - 1)] == [100, 2 * FIRST + 2, 2 * (FIRST + LATER)]
    with pytest.raises(AnalysisException):
        rows(20)

    followed = spark.readStream.format("delta").option("startingVersion", FIRST).load(path)
    query = (
        followed.writeStream.format("delta")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "copy"))
    )
    query.awaitTermination()
    assert spark.read.format("delta").load(str(tmp_path / "copy")).count() == 2 * LATER

    spark.sql(f"OPTIMIZE delta.`{path}`")
    history.take(1)

    assert rows() == 2 * (FIRST + LATER + 1)
    assert TableLog.read(history.store, SILVER.name).live_rows == 2 * (FIRST + LATER + 1)
    assert reconcile(history.store).problems == []
