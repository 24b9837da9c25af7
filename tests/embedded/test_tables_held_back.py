"""What another program does to the table of one game stops no other game."""

from collections import Counter

import pytest

from tests.embedded.lakehouse import Lakehouse
from tests.embedded.sending import Sender


@pytest.mark.slow
def test_a_table_that_spark_has_changed_costs_no_other_game_a_row(lakehouse: Lakehouse, sender: Sender) -> None:
    archery, bingo = sender.send_events(20, "Archery"), sender.send_events(20, "Bingo")
    lakehouse.ingest()
    table = f"delta.`file://{lakehouse.directory}/lake/silver/bingo_events`"
    with lakehouse.session() as spark:
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")

    for _ in range(2):
        archery += sender.send_events(30, "Archery")
        bingo += sender.send_events(10, "Bingo")
        lakehouse.ingest()

    found = lakehouse.reconciliation()
    assert lakehouse.event_ids("silver/archery_events") == Counter(archery)
    assert lakehouse.event_ids("silver/events") == Counter(archery + bingo)
    assert lakehouse.event_ids("silver/bingo_events") == Counter(bingo[:20])
    assert found.problems == []
    assert found.held[0].startswith("silver/bingo_events: 20 rows in ")
    assert "rowTracking" in found.held[0]

    with lakehouse.session() as spark:
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableRowTracking' = 'false')")
        spark.sql(f"ALTER TABLE {table} DROP FEATURE rowTracking")
    lakehouse.ingest()

    assert lakehouse.event_ids("silver/bingo_events") == Counter(bingo)
    assert (lakehouse.reconciliation().held, lakehouse.reconciliation().problems) == ([], [])
