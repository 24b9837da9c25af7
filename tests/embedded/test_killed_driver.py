"""Rows 6 to 9 of the fault matrix: the driver dies by SIGKILL between any two steps of a batch."""

from collections import Counter

import pytest

from gamelake.model.failpoints import Failpoint
from tests.embedded.lakehouse import GAMES, Lakehouse
from tests.embedded.sending import Sender

# Before the decision, after it, and between two tables.
DEATHS = ((Failpoint.AFTER_FILES, 1), (Failpoint.AFTER_MANIFEST, 1), (Failpoint.AFTER_TABLE_COMMIT, 3))
OTHER_DEATHS = (
    (Failpoint.BEFORE_FILES, 1),
    (Failpoint.AFTER_SETTLE_RECORD, 1),
    (Failpoint.AFTER_TABLE_COMMIT, 1),
    (Failpoint.AFTER_COMMITS, 1),
)


def send_a_bit_of_everything(sender: Sender) -> None:
    sender.send_again()
    sender.send_events(50, "Archery")
    sender.send_events(40, "Bingo")
    sender.send_bad([b"\x07 wrong magic", None])


@pytest.mark.parametrize("deaths", [DEATHS, pytest.param(OTHER_DEATHS, marks=pytest.mark.slow)])
def test_a_driver_killed_at_any_step_loses_nothing_and_doubles_nothing(
    lakehouse: Lakehouse, sender: Sender, deaths: tuple[tuple[Failpoint, int], ...]
) -> None:
    for step, at in deaths:
        send_a_bit_of_everything(sender)
        lakehouse.ingest_killed(step, at)
    sender.send_again()
    lakehouse.ingest()

    # The last events before each death were sent again after it: taken by the dead one or not, each is one row.
    assert lakehouse.event_ids() == Counter(sender.ledger.event_ids)
    assert sum(lakehouse.reconciliation().duplicates.values()) == sender.ledger.sent_again == 40 * len(deaths)
    assert sum(lakehouse.reasons().values()) == sender.ledger.bad
    assert lakehouse.reconciliation().problems == []


def test_the_decision_of_a_killed_batch_is_kept_though_the_contract_changes(
    lakehouse: Lakehouse, sender: Sender
) -> None:
    sent = sender.send_events(30, "Archery")
    lakehouse.ingest_killed(Failpoint.AFTER_MANIFEST)
    lakehouse.games_file.write_text(GAMES.replace("Archery", "Another").replace("own_table", "dead_letters"))

    lakehouse.ingest()

    assert lakehouse.event_ids("silver/archery_events") == Counter(sent)
    assert lakehouse.reasons() == Counter()
    assert lakehouse.reconciliation().problems == []


@pytest.mark.slow
def test_the_decision_of_a_killed_batch_is_kept_without_a_registry(lakehouse: Lakehouse, sender: Sender) -> None:
    sent = sender.send_events(30, "Archery")
    lakehouse.ingest_killed(Failpoint.AFTER_TABLE_COMMIT, 2)
    lakehouse.registry_url = "http://127.0.0.1:9/no-registry"

    lakehouse.ingest()

    assert lakehouse.event_ids("silver/archery_events") == Counter(sent)
    assert lakehouse.reconciliation().problems == []
