"""What Spark switches on in one table stops no batch, and what it deletes is counted and never read as a row."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from gamelake.delta.log.table_log import TableLog
from gamelake.delta.tables import DeltaTables
from gamelake.ledger.reconciliation import vector_problems
from gamelake.model.errors import StoreError
from gamelake.objects.store import Store
from gamelake.recovery.restore import TableRestore
from gamelake.recovery.table_history import TableHistory
from gamelake.scans.player_rows import PlayerFilter, count_rows, rows_of
from gamelake.serving.sql.duckdb import answer
from gamelake.serving.sql.relations import Reads
from tests.support.player_tables import SILVER, append, store_in

NAME = SILVER.name


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = store_in(tmp_path)
    with DeltaTables(store.location) as tables:
        append(tables, store, SILVER, 0, ["a" * 32, "b" * 32, "c" * 32])
    return store


@pytest.mark.parametrize(
    "features",
    [
        ["enableChangeDataFeed", "enableDeletionVectors"],
        pytest.param(["enableChangeDataFeed"], marks=pytest.mark.slow),
        pytest.param(["enableDeletionVectors"], marks=pytest.mark.slow),
    ],
)
def test_batches_go_on_after_spark_has_switched_on_features_and_deleted_rows(
    spark: SparkSession, store: Store, features: list[str]
) -> None:
    table = f"delta.`{store.location.child(NAME)}`"
    properties = ", ".join(f"'delta.{feature}' = 'true'" for feature in features)
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({properties})")
    spark.sql(f"DELETE FROM {table} WHERE gamer_id = '{'a' * 32}'")  # noqa: S608

    with DeltaTables(store.location) as tables:
        append(tables, store, SILVER, 1, ["d" * 32])

    found = spark.sql(f"SELECT gamer_id FROM {table} ORDER BY gamer_id").collect()  # noqa: S608
    assert [row.gamer_id for row in found] == [letter * 32 for letter in "bcd"]
    vectors = list(vector_problems(TableLog.read(store, NAME)))
    assert [each.split(",")[0] for each in vectors] == (
        ["1 rows are deleted by deletion vectors"] if "enableDeletionVectors" in features else []
    )
    if "enableChangeDataFeed" in features:
        feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 2)
        changes = feed.load(store.location.child(NAME)).select("_change_type", "gamer_id")
        assert sorted(tuple(row) for row in changes.collect()) == [("delete", "a" * 32), ("insert", "d" * 32)]


def rows_by_duckdb(store: Store) -> int:
    name = NAME.replace("/", ".")
    return len(answer(f"SELECT gamer_id FROM {name}", Reads(frozenset({name}), ()), store.location))  # noqa: S608


def test_readers_refuse_a_table_with_deletion_vectors_until_its_files_are_purged(
    spark: SparkSession, store: Store
) -> None:
    player, table = PlayerFilter(frozenset(["b" * 32])), f"delta.`{store.location.child(NAME)}`"
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    assert rows_by_duckdb(store) == 3  # the feature alone deletes nothing
    spark.sql(f"DELETE FROM {table} WHERE gamer_id = '{'a' * 32}'")  # noqa: S608

    for read in (
        lambda: rows_by_duckdb(store),
        lambda: count_rows(store, SILVER, player),
        lambda: list(rows_of(store, SILVER, "b" * 32)),
        lambda: TableRestore(TableHistory.read(store, NAME), 0).dry_run(),
    ):
        with pytest.raises(StoreError, match=rf"{NAME}.* deletion vectors .*REORG TABLE .*{NAME}.* APPLY \(PURGE\)"):
            read()

    spark.sql(f"REORG TABLE {table} APPLY (PURGE)")
    assert rows_by_duckdb(store) == 2
    assert count_rows(store, SILVER, player).rows == 1
