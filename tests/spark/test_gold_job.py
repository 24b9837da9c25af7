"""The job of the gold tables as it is run: refreshes in Spark's tasks, killed and started again."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from gamelake.model.errors import StoreError
from gamelake.objects.store import Location
from gamelake.serving.gold.refresh import RefreshOutcome
from tests.conftest import JARS
from tests.support.eventually import eventually
from tests.unit.serving.gold.histories import DAILY, PLAYERS, SILVER, append, gold, recomputed, refresh, silver

REPOSITORY = Path(__file__).parents[2]
CONTRACT = {
    "games": [{"name": "archery_duel", "match": ["Archery Duel"]}],
    "aggregates": [
        {
            "name": spec.name,
            "group_by": spec.group_by,
            "columns": spec.sql,
            "refresh": spec.refresh.value,
            "every": "1 second",
        }
        for spec in (PLAYERS, DAILY)
    ],
}


@pytest.fixture
def lake(tmp_path: Path) -> Location:
    return Location(uri=f"file://{tmp_path}")


class GoldJob:
    """The job in a process of its own, on the same tables each time it is started."""

    def __init__(self, lake: Location) -> None:
        folder = Path(lake.uri.removeprefix("file://"))
        (folder / "games.yaml").write_text(json.dumps(CONTRACT))
        self.log = folder / "gold.log"
        self._environment = os.environ | {
            "GAMELAKE_LAKEHOUSE": lake.uri,
            "GAMELAKE_GAMES_FILE": str(folder / "games.yaml"),
            "GAMELAKE_SPARK_JARS": str(JARS),
        }
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, *options: str) -> "subprocess.Popen[bytes]":
        """Start it, with nothing but its settings."""
        with self.log.open("ab") as log:
            command = (sys.executable, "-m", "jobs.gold", *options)
            self._running.append(
                subprocess.Popen(command, cwd=REPOSITORY, env=self._environment, stdout=subprocess.PIPE, stderr=log)
            )
        return self._running[-1]

    def stop(self) -> None:
        """End what still runs."""
        for process in self._running:
            if process.poll() is None:
                process.kill()
            process.communicate()


@pytest.fixture
def job(lake: Location, spark: SparkSession) -> Iterator[GoldJob]:  # which says what this machine lacks
    started = GoldJob(lake)
    yield started
    started.stop()


def is_up_to_date(lake: Location) -> bool:
    """Return True if both tables are there and equal to a recompute."""
    there = all(DeltaTable.is_deltatable(lake.child(spec.table("archery_duel"))) for spec in (PLAYERS, DAILY))
    return there and all(gold(lake, spec) == recomputed(lake, spec) for spec in (PLAYERS, DAILY))


@pytest.mark.slow
def test_a_job_that_was_killed_goes_on_where_the_tables_say_and_ends_when_it_is_asked(
    lake: Location, job: GoldJob
) -> None:
    append(lake, [("ann", 0, None), ("bob", 10, 4.99)])
    first = job.start()
    eventually(lambda: is_up_to_date(lake), timeout=60)

    # In the middle of whatever it does then.
    append(lake, [("ann", 20, 0.1), ("cid", 1, 0.2)], day=1)
    first.send_signal(signal.SIGKILL)
    silver(lake).delete("gamer_id = 'bob'")

    second = job.start()
    eventually(lambda: is_up_to_date(lake), timeout=60)
    second.terminate()
    assert second.wait(60) == 0


@pytest.mark.slow
def test_once_says_what_became_of_each_table(lake: Location, job: GoldJob, spark: SparkSession) -> None:
    append(lake, [("ann", 0, None), ("ann", 5, 1.0)])

    output, _ = job.start("--once").communicate(timeout=120)

    results = {each["table"]: each for each in json.loads(output)}
    assert {name: each["outcome"] for name, each in results.items()} == {
        "gold/archery_duel_player_agg": "rebuilt",
        "gold/archery_duel_daily": "rebuilt",
    }
    # Spark reads what its tasks have written without it.
    (row,) = spark.read.format("delta").load(lake.child("gold/archery_duel_player_agg")).collect()
    assert (row["gamer_id"], row["session_count"], float(row["bookings"])) == ("ann", 1, 1.0)


def test_gold_is_rebuilt_after_rows_were_deleted_by_deletion_vectors(lake: Location, spark: SparkSession) -> None:
    append(lake, [("ann", 0, 1.0), ("bob", 10, 2.0), ("ann", 11, 4.0)])
    refresh(lake)
    table = f"delta.`{lake.child(SILVER)}`"
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)")
    spark.sql(f"DELETE FROM {table} WHERE gamer_id = 'bob'")  # noqa: S608 # the test's own table
    with pytest.raises(StoreError, match="REORG TABLE"):
        refresh(lake)

    spark.sql(f"REORG TABLE {table} APPLY (PURGE)")

    assert refresh(lake) is RefreshOutcome.REBUILT
    assert [row[0] for row in gold(lake)] == ["ann"]
    append(lake, [("cid", 20, 1.0)])
    assert refresh(lake) is RefreshOutcome.MERGED
    assert [row[0] for row in gold(lake)] == ["ann", "cid"]
