"""The SQL of contracts/metrics.yaml has the same figures in Spark as in DuckDB, which keeps gold up."""

from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from gamelake.contract.metrics import load_metrics
from gamelake.model.naming import SILVER_EVENTS
from gamelake.scans.sql_engine import engine
from tests.support.silver_events import BEGINNING, Event, Silver

METRICS = load_metrics(Path("contracts/metrics.yaml"))
PLAYED = [
    Event(at=BEGINNING, gamer="ann", name="session_start", taken_in=BEGINNING + timedelta(hours=5)),
    Event(at=BEGINNING, gamer="ann", name="purchase", amount=5.0),
    Event(at=BEGINNING, gamer="ann", name="purchase", amount=3.0, taken_in=BEGINNING + timedelta(hours=4)),
    Event(at=BEGINNING, gamer="bob", session="", name="level_completed", arrival_is_known=False),
    Event(at=BEGINNING, gamer="eve", name="smoke_test", amount=1.0, taken_in=BEGINNING + timedelta(days=9)),
]


def test_spark_and_duckdb_have_the_same_figures(spark: SparkSession, tmp_path: Path) -> None:
    silver = Silver(tmp_path)
    silver.append(PLAYED)
    figures = ", ".join(
        f"CAST({METRICS.sql(metric)} AS DOUBLE) AS {metric.name}"
        for metric in METRICS.metrics
        if metric.config.meta.unit != "time"
    )
    with engine(1) as sql:
        sql.give("events", silver.table(SILVER_EVENTS))
        [expected] = sql.table(f"SELECT {figures} FROM events").to_pylist()  # noqa: S608 # the contract's SQL
    spark.read.format("delta").load(silver.location.child(SILVER_EVENTS)).createOrReplaceTempView("metric_events")

    [found] = spark.sql(f"SELECT {figures} FROM metric_events").collect()  # noqa: S608 # see above

    assert found.asDict() == pytest.approx(expected)
    assert expected["late_events"] == 1
