"""Rows 25 and 30 of the fault matrix: dead letters repaired and replayed, and a bad period restored and backfilled."""

import json
import signal
from collections import Counter

import pytest

from gamelake.model.failpoints import Failpoint
from gamelake.model.naming import DEAD_LETTERS, REPLAYED, SILVER_EVENTS
from tests.embedded.lakehouse import GAMES, Lakehouse
from tests.embedded.sending import Sender

WITHOUT_BINGO = GAMES.replace("own_table", "dead_letters").replace("  - name: bingo\n    match: [Bingo]\n", "")


@pytest.mark.slow
def test_replayed_dead_letters_land_once_though_the_replay_is_killed_repeatedly(
    lakehouse: Lakehouse, sender: Sender
) -> None:
    lakehouse.games_file.write_text(WITHOUT_BINGO)
    sender.send_events(50, "Archery")
    letters = sender.send_events(40, "Bingo")
    lakehouse.ingest()
    assert lakehouse.reasons() == Counter({"unroutable": 40})
    lakehouse.games_file.write_text(GAMES)

    steps = (
        Failpoint.AFTER_FILES,
        Failpoint.AFTER_MANIFEST,
        Failpoint.AFTER_REPLAY_NOTICE,
        Failpoint.AFTER_TABLE_COMMIT,
    )
    for step in steps:
        killed = lakehouse.start(job="replay", kill=step)
        assert killed.wait() == -signal.SIGKILL, killed.log_text()[-3000:]
    with lakehouse.ingesting():
        lakehouse.await_rows(SILVER_EVENTS, sender.send_events(30, "Bingo"))
        replay = lakehouse.start(job="replay")
        assert replay.wait() == 0, replay.log_text()[-3000:]

    assert lakehouse.event_ids() == Counter(sender.ledger.event_ids)
    assert set(letters) <= lakehouse.event_ids("silver/bingo_events").keys()
    assert sum(lakehouse.event_ids("silver/bingo_events").values()) == 70
    assert lakehouse.rows(REPLAYED, "offset").num_rows == lakehouse.rows(DEAD_LETTERS, "offset").num_rows == 40
    reconciliation = lakehouse.reconciliation()
    assert (reconciliation.problems, reconciliation.replayed) == ([], 40)


def test_a_bad_period_is_restored_and_backfilled_while_the_stream_runs(lakehouse: Lakehouse, sender: Sender) -> None:
    tables = ("silver/archery_events", SILVER_EVENTS)
    sender.send_events(100, "Archery")
    lakehouse.ingest()
    with lakehouse.ingesting():
        lakehouse.await_rows(SILVER_EVENTS, sender.send_events(80, "Archery"))
        lakehouse.await_rows(SILVER_EVENTS, sender.send_events(60, "Bingo"))
        restore = lakehouse.start("--game", "archery", "--before-batch", "1", "--replay", "--yes", job="restore")
        meanwhile = sender.send_events(70, "Archery")
        assert restore.wait() == 0, restore.log_text()[-3000:]
        for table in tables:
            lakehouse.await_rows(table, meanwhile)

    log = restore.log_text()
    outcome = json.loads(log[log.index('{\n  "restored"') :].partition("\n}\n")[0] + "\n}")
    assert outcome["streams"] == ["ingest_events"]
    went = {each["table"]: each["rows_removed"] for each in outcome["restored"]}
    assert went == outcome["replayed"]["rows"]
    assert went["silver/archery_events"] == went[SILVER_EVENTS] >= 80
    assert lakehouse.event_ids() == Counter(sender.ledger.event_ids)
    assert sum(lakehouse.event_ids("silver/archery_events").values()) == 250
    assert lakehouse.reconciliation().problems == []
