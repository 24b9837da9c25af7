"""Rules in the running stream: changed without a restart, judged once whatever is killed, and stopping the query."""

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gamelake.model.failpoints import Failpoint
from gamelake.model.naming import BRONZE_EVENTS, QUALITY, QUARANTINE, RELEASED, SILVER_EVENTS
from tests.embedded.lakehouse import Lakehouse
from tests.embedded.sending import Sender
from tests.support.eventually import eventually
from tests.unit.quality.rules_and_rows import a_rule, written

NOT_BAD = a_rule("not_bad", "session_id <> 'bad'")
NOT_GONE = a_rule("not_gone", "session_id <> 'gone'", severity="drop")
NOT_LOUD = a_rule("not_loud", "session_id <> 'loud'", severity="warn")


@contextmanager
def ruled(lakehouse: Lakehouse, *rules: dict[str, object]) -> Iterator[Path]:
    """The job has a folder with rules, which a test may change."""
    folder = written(lakehouse.directory / "rules", *rules)
    lakehouse.settings["GAMELAKE_RULES"] = str(folder)
    yield folder


@pytest.mark.slow
def test_a_changed_rule_applies_to_the_next_batch_without_a_restart(lakehouse: Lakehouse, sender: Sender) -> None:
    with ruled(lakehouse, NOT_LOUD) as folder, lakehouse.ingesting() as job:
        before = sender.send_events(20, "Archery", session_id="bad")
        lakehouse.await_rows(SILVER_EVENTS, before)

        written(folder, NOT_LOUD, NOT_BAD)
        after = sender.send_events(30, "Archery", session_id="bad")
        lakehouse.await_rows(QUARANTINE, after)

        written(folder, a_rule(expect="amuont >= 0"))
        later = sender.send_events(10, "Archery", session_id="bad")
        lakehouse.await_rows(QUARANTINE, later)
        eventually(lambda: "names the column 'amuont', which no schema has" in job.log_text())

    assert lakehouse.event_ids() == Counter(before)
    assert lakehouse.event_ids(QUARANTINE) == Counter(after + later)
    (fingerprint,) = set(lakehouse.rows(QUARANTINE, "fingerprint")["fingerprint"].to_pylist())
    assert len(fingerprint) == 12
    reconciliation = lakehouse.reconciliation()
    assert (reconciliation.problems, reconciliation.quarantined, reconciliation.silver_rows) == (
        [],
        Counter(not_bad=40),
        20,
    )
    figures = lakehouse.rows(QUALITY).to_pylist()
    assert {(each["rule"], each["severity"], each["judged"], each["broken"]) for each in figures} == {
        ("not_loud", "warn", 60, 0),
        ("not_bad", "quarantine", 40, 40),
    }


@pytest.mark.slow
def test_each_row_is_evaluated_once_though_driver_and_replay_are_killed_and_rules_change_meanwhile(
    lakehouse: Lakehouse, sender: Sender
) -> None:
    good, bad, gone = Counter[str](), Counter[str](), Counter[str]()
    with ruled(lakehouse, NOT_BAD, NOT_GONE, NOT_LOUD) as folder:
        for step, at in ((Failpoint.AFTER_TABLE_COMMIT, 2), (Failpoint.AFTER_MANIFEST, 1)):
            good.update(sender.send_events(20, "Archery") + sender.send_events(10, "Bingo", session_id="loud"))
            bad.update(sender.send_events(15, "Bingo", session_id="bad"))
            gone.update(sender.send_events(5, "Archery", session_id="gone"))
            lakehouse.ingest_killed(step, at)
        # What the killed batch has decided of all that was sent so far stands, whatever the rules say by now.
        written(folder, NOT_LOUD)
        sender.send_again()
        lakehouse.ingest()

        assert lakehouse.event_ids() == good
        assert lakehouse.event_ids(QUARANTINE) == bad
        assert lakehouse.rows(BRONZE_EVENTS, "offset").num_rows == sum((good + bad + gone).values()) + 5
        reconciliation = lakehouse.reconciliation()
        assert (reconciliation.problems, reconciliation.quarantined, reconciliation.dropped) == (
            [],
            {"not_bad": 30},
            {"not_gone": 10},
        )
        assert sum(reconciliation.duplicates.values()) == 5

        for step in (Failpoint.AFTER_FILES, Failpoint.AFTER_TABLE_COMMIT):
            killed = lakehouse.start("--source", "quarantine", job="replay", kill=step)
            assert killed.wait() == -signal.SIGKILL, killed.log_text()[-3000:]
        replay = lakehouse.start("--source", "quarantine", job="replay")
        assert replay.wait() == 0, replay.log_text()[-3000:]
        assert lakehouse.event_ids() == good + bad
        assert lakehouse.rows(RELEASED, "offset").num_rows == 30
        assert (lakehouse.reconciliation().problems, lakehouse.reconciliation().released) == ([], 30)


@pytest.mark.slow
def test_a_row_that_breaks_a_rule_of_severity_fail_stops_the_query(lakehouse: Lakehouse, sender: Sender) -> None:
    with ruled(lakehouse, NOT_BAD | {"severity": "fail"}) as folder:
        sent = sender.send_events(20, "Archery") + sender.send_events(3, "Bingo", session_id="bad")
        job = lakehouse.start("--available-now")
        assert job.wait() == 3, job.log_text()[-3000:]
        assert "3 rows of bingo break 'not_bad': nothing of the batch was taken" in job.log_text()
        assert lakehouse.event_ids() == Counter()

        written(folder, NOT_BAD | {"severity": "warn"})
        lakehouse.ingest()

    assert lakehouse.event_ids() == Counter(sent)
    assert lakehouse.reconciliation().problems == []


def test_a_rule_that_cannot_be_evaluated_is_rejected_at_the_start(lakehouse: Lakehouse, sender: Sender) -> None:
    with ruled(lakehouse, a_rule(expect="amuont >= 0")):
        sender.send_events(1, "Archery")
        job = lakehouse.start("--available-now")

        assert job.wait() == 2, job.log_text()[-3000:]
        assert "rules.yaml:2: the rule 'paid' names the column 'amuont', which no schema has" in job.log_text()
