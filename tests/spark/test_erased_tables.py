"""What Spark makes of a table from which rows of people were taken out."""

from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from gamelake.delta.tables import DeltaTables
from gamelake.privacy.lake_erasure import plan_purge
from gamelake.privacy.row_eraser import RowEraser
from gamelake.scans.player_rows import PlayerFilter
from tests.support.player_tables import SILVER, append, players_in, store_in

ANNA, BEN = "a" * 32, "b" * 32


@pytest.mark.slow
def test_spark_reads_and_compacts_what_is_left_and_can_bring_nothing_back(spark: SparkSession, tmp_path: Path) -> None:
    store, anna = store_in(tmp_path), PlayerFilter(frozenset([ANNA]))
    table = f"delta.`{tmp_path}/{SILVER.name}`"
    with DeltaTables(store.location) as tables:
        for batch in range(3):
            append(tables, store, SILVER, batch, [ANNA, BEN, BEN])
    RowEraser(store, SILVER, anna, "run-1").erase()
    spark.sql(f"OPTIMIZE {table}").collect()
    restored = spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF 2").collect()
    players_again = players_in(store, SILVER)

    RowEraser(store, SILVER, anna, "run-2").erase()
    for planned in plan_purge(store, "run-2", [SILVER], anna, timedelta(0)).tables:
        for path in planned.paths:
            store.delete(f"{planned.table}/{path}")

    # Without a purge an old version returns, and is swept out again; with one it is gone for good.
    assert restored
    assert players_again == Counter({ANNA: 3, BEN: 6})
    rows = spark.sql(f"SELECT gamer_id FROM {table}").collect()  # noqa: S608 # the test's own table
    assert [row.gamer_id for row in rows] == [BEN] * 6
    with pytest.raises(PySparkException, match="Not all files from version 2 are available"):
        spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF 2").collect()
    with pytest.raises(Py4JJavaError, match="FILE_NOT_EXIST"):
        spark.sql(f"SELECT gamer_id FROM {table} VERSION AS OF 2").collect()  # noqa: S608 # see above
    assert players_in(store, SILVER) == Counter({BEN: 6})
