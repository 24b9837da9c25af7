"""Row 35 of the fault matrix: everything is sent ten times. `test_killed_driver.py` sends again after each death."""

from collections import Counter

from tests.embedded.lakehouse import Lakehouse
from tests.embedded.sending import Sender

STORM = 10
DEDUP_OFF = {"GAMELAKE_DEDUP_WINDOW_SECONDS": "0"}


def test_a_storm_of_retries_is_one_row_per_event_and_leaves_little_behind(lakehouse: Lakehouse, sender: Sender) -> None:
    lakehouse.settings["GAMELAKE_MAX_OFFSETS_PER_TRIGGER"] = "1000"
    for game in ("Archery", "Bingo"):
        sender.send_events(300, game)
        for _ in range(STORM - 1):
            sender.send_again()

    lakehouse.ingest()

    reconciliation = lakehouse.reconciliation()
    assert reconciliation.problems == []
    assert reconciliation.batches > 5
    assert lakehouse.event_ids() == Counter(sender.ledger.event_ids)
    assert lakehouse.event_ids("silver/bingo_events") == Counter(sender.ledger.event_ids[300:])
    assert reconciliation.duplicates == {"archery": (STORM - 1) * 300, "bingo": (STORM - 1) * 300}
    assert lakehouse.rows("bronze/events", "offset").num_rows == STORM * 600
    remembered = lakehouse.directory / "lake/_gamelake/streams/ingest_events/events"
    assert sum(path.stat().st_size for path in remembered.iterdir()) == 16 * 600


def test_without_a_window_each_record_is_a_row(lakehouse: Lakehouse, sender: Sender) -> None:
    lakehouse.settings |= DEDUP_OFF
    sender.send_events(10, "Archery")
    sender.send_again()

    lakehouse.ingest()

    assert set(lakehouse.event_ids().values()) == {2}
    assert lakehouse.reconciliation().problems == []
