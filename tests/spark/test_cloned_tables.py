"""Spark reads a clone whose files stand in another table's folder, and what is done to it stays out of its source."""

from pathlib import Path

from pyspark.sql import SparkSession

from gamelake.delta.tables import DeltaTables
from gamelake.ledger.clones import CloneKind, Clones
from gamelake.objects.store import Location, Store
from gamelake.recovery.cloning import Cloning
from gamelake.scans.player_rows import PlayerFilter
from tests.support.player_tables import SILVER, append, players_in

ANNA, BEN = "a" * 32, "b" * 32


def test_an_analyst_plays_with_a_clone_and_its_source_stays_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(Location(uri=tmp_path.as_uri()))
    with DeltaTables(store.location) as tables:
        for batch, player in enumerate((ANNA, BEN, BEN)):
            append(tables, store, SILVER, batch, [player])
    made = Cloning(
        store=store, name="toy", sources=[SILVER.name], moment=lambda h: h.at_version(1), kind=CloneKind.SHALLOW
    )
    toy = f"delta.`{tmp_path}/{made.make().tables[0].table}`"

    def players() -> list[str]:
        return sorted(row.gamer_id for row in spark.sql(f"SELECT gamer_id FROM {toy}").collect())  # noqa: S608

    assert players() == [ANNA, BEN]
    spark.sql(f"UPDATE {toy} SET gamer_id = 'changed' WHERE gamer_id = '{ANNA}'")  # noqa: S608
    spark.sql(f"OPTIMIZE {toy}")

    assert players() == [BEN, "changed"]
    assert players_in(store, SILVER) == {ANNA: 1, BEN: 2}
    # What the analyst has overwritten is in an older version of the clone still.
    assert [each.name for each in Clones(store).with_rows_of(PlayerFilter(frozenset([ANNA])))] == ["toy"]
