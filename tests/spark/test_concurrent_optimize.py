"""Row 26 of the fault matrix: OPTIMIZE while a stream appends, Spark's own and ours, and neither fails."""

from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from threading import Event

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from gamelake.delta.appends import BatchTransaction
from gamelake.delta.tables import CommitOutcome, DeltaTables
from gamelake.maintenance.compaction import CompactionRule, TableCompaction
from tests.support.eventually import eventually
from tests.support.player_tables import SILVER, an_entry, players_in, store_in

PLAYER = "a" * 32
RUNS = 2


@pytest.mark.slow
def test_no_append_fails_while_spark_and_we_optimize_in_turns(spark: SparkSession, tmp_path: Path) -> None:
    store, stop = store_in(tmp_path), Event()
    path = f"{tmp_path}/{SILVER.name}"

    # As often as batches come: Spark takes longer than 100 ms to put its entry behind the newest one.
    def append_on() -> int:
        batch = 0
        with DeltaTables(store.location) as tables:
            while not stop.wait(1.5) or batch < 4:
                entry = an_entry(store, SILVER, [PLAYER])
                assert tables.append(entry, BatchTransaction("query-0", batch)) is CommitOutcome.COMMITTED
                batch += 1
        return batch

    compaction = TableCompaction(
        store.location, SILVER.name, CompactionRule(target_bytes=10**6, hot_files=1, today=date(2026, 11, 22))
    )

    # One file alone is nothing to pack: each waits for another batch.
    def await_files() -> None:
        eventually(lambda: DeltaTable.is_deltatable(path) and len(DeltaTable(path).file_uris()) > 1)

    with ThreadPoolExecutor(1) as pool:
        stream = pool.submit(append_on)
        try:
            for _ in range(RUNS):
                # Nothing is raised: an append since then is not a conflict for either.
                await_files()
                spark.sql(f"OPTIMIZE delta.`{path}`")
                await_files()
                compaction()
        finally:
            stop.set()
        batches = stream.result()

    assert players_in(store, SILVER) == {PLAYER: batches}
    done = [entry["operation"] for entry in DeltaTable(path).history()]
    assert done.count("OPTIMIZE") == 2 * RUNS
    assert done.count("WRITE") == batches


def test_spark_makes_the_versions_of_a_local_table_by_links(spark: SparkSession, tmp_path: Path) -> None:
    """What the store of our own does is tested in Java; here, that Spark uses it: Delta's own leaves checksums."""
    spark.range(3).write.format("delta").save(f"{tmp_path}/table")

    log = tmp_path / "table/_delta_log"
    assert (log / f"{0:020d}.json").exists()
    assert not list(log.glob(".*.json.crc"))
