"""A task keeps, quarantines or drops rows that break a rule."""

import json
from pathlib import Path

import pytest

from gamelake.layers.silver import COMMON_SCHEMA
from gamelake.ledger.manifests import Judged
from gamelake.model.errors import BrokenRuleError
from gamelake.model.naming import BRONZE_EVENTS, QUARANTINE, SILVER_EVENTS
from gamelake.quality.checking import CheckedRules, check_rules
from gamelake.quality.judging import merge_judged, require_no_failures
from gamelake.quality.rules import load_rules
from gamelake.streaming.plan import DedupPlan
from tests.unit.quality.rules_and_rows import a_rule, written
from tests.unit.streaming.tasks import KART_TABLE, YETI_TABLE, TaskLakehouse, TaskOutcome, a_record, an_event, numbered


@pytest.fixture
def lakehouse(tmp_path: Path) -> TaskLakehouse:
    return TaskLakehouse(tmp_path / "lake")


def _rules(folder: Path, *rules: dict[str, object]) -> CheckedRules:
    return check_rules(load_rules(written(folder / "rules", *rules)), COMMON_SCHEMA, ())


def _judged(outcome: TaskOutcome) -> Judged:
    return merge_judged(report.judged for report in outcome.reports)


THREE = numbered(
    [
        a_record(1, eventId="a"),
        a_record(1, eventId="b", eventParams={"amount": -1.5}),
        a_record(1, eventId="c", gameName="Yeti Ski"),
    ]
)


def test_a_row_that_breaks_a_warning_rule_goes_to_silver_and_is_counted(
    lakehouse: TaskLakehouse, tmp_path: Path
) -> None:
    rules = _rules(tmp_path, a_rule(severity="warn"))

    outcome = lakehouse.run(THREE, rules=rules)

    (count,) = _judged(outcome).counts
    assert (count.game, count.rule, count.severity, count.broken) == ("kart_rumble", "paid", "warn", 1)
    assert count.fingerprint == rules.rules.rules[0].fingerprint
    assert _judged(outcome).rows == {"kart_rumble": 2, "yeti_ski": 1}
    assert _judged(outcome).rules == rules.rules.fingerprint
    assert outcome.count(SILVER_EVENTS) == 3
    assert outcome.count(QUARANTINE) == 0


def test_a_quarantined_row_is_kept_typed_with_its_rule_and_its_record(lakehouse: TaskLakehouse, tmp_path: Path) -> None:
    rules = _rules(tmp_path, a_rule(), a_rule("named", "event_name <> 'level_completed'", severity="warn"))

    outcome = lakehouse.run(THREE, rules=rules)

    (row,) = outcome.rows(QUARANTINE)
    assert (row["rule"], row["severity"], row["broken"], row["game"]) == (
        "paid",
        "quarantine",
        ["paid", "named"],
        "kart_rumble",
    )
    assert row["fingerprint"] == rules.rules.rules[0].fingerprint
    assert (row["event_id"], row["amount"], row["event_date"]) == ("b", -1.5, "2026-01-01")
    assert (row["topic"], row["kafka_partition"], row["kafka_offset"]) == ("events", 0, 1)
    assert row["value"] == THREE[1].value
    typed = json.loads(row["row"])
    assert (typed["event_id"], typed["amount"], typed["device_id"]) == ("b", -1.5, "")
    assert typed["event_time"] == "2026-01-01 11:59:00"
    assert [each["event_id"] for each in outcome.rows(SILVER_EVENTS)] == ["a", "c"]
    assert outcome.count(BRONZE_EVENTS) == 3
    assert _judged(outcome).quarantined == {"paid": 1}


def test_a_dropped_row_is_only_in_bronze(lakehouse: TaskLakehouse, tmp_path: Path) -> None:
    rules = _rules(tmp_path, a_rule(severity="drop"))

    outcome = lakehouse.run(THREE, rules=rules)

    assert (outcome.count(BRONZE_EVENTS), outcome.count(SILVER_EVENTS), outcome.count(QUARANTINE)) == (3, 2, 0)
    assert _judged(outcome).dropped == {"paid": 1}


def test_a_row_that_one_rule_quarantines_is_not_dropped_by_another(lakehouse: TaskLakehouse, tmp_path: Path) -> None:
    rules = _rules(tmp_path, a_rule("kept"), a_rule("gone", severity="drop"))

    judged = _judged(lakehouse.run(THREE, rules=rules))

    assert (judged.quarantined, judged.dropped) == ({"kept": 1}, {})
    assert {count.rule: count.broken for count in judged.counts} == {"kept": 1, "gone": 1}


def test_a_rule_applies_only_to_its_games(lakehouse: TaskLakehouse, tmp_path: Path) -> None:
    rules = _rules(tmp_path, a_rule("of_yeti", "event_id = ''", games=["yeti_ski"]))

    outcome = lakehouse.run(THREE, rules=rules)

    assert outcome.count(KART_TABLE) == 2
    assert outcome.count(YETI_TABLE) == 0
    assert _judged(outcome).quarantined == {"of_yeti": 1}


def test_a_quarantined_event_that_is_sent_again_is_a_duplicate(lakehouse: TaskLakehouse, tmp_path: Path) -> None:
    dedup = DedupPlan(folder="_gamelake/streams/s/events", batch_id=0, seed="s", window_seconds=600)
    bad = an_event(eventParams={"amount": -1.0})
    records = numbered([a_record(1, **bad), a_record(1, **bad), a_record(1, **an_event(eventId="other"))])

    outcome = lakehouse.run(records, rules=_rules(tmp_path, a_rule()), dedup=dedup)

    assert (outcome.count(QUARANTINE), outcome.count(SILVER_EVENTS)) == (1, 1)
    assert outcome.reports[0].duplicates == {"kart_rumble": 1}
    assert outcome.reports[0].events is not None
    assert sum(section.events for section in outcome.reports[0].events.sections) == 2


def test_a_broken_rule_of_severity_fail_stops_the_batch_and_is_named_with_the_game(
    lakehouse: TaskLakehouse, tmp_path: Path
) -> None:
    rules = _rules(tmp_path, a_rule(severity="fail"))

    judged = _judged(lakehouse.run(THREE, rules=rules))

    with pytest.raises(BrokenRuleError, match=r"1 rows of kart_rumble break 'paid': nothing of the batch was taken"):
        require_no_failures(judged)
