"""Retentions that contradict each other are named, and the loss with them; those that are unknown are left out."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from gamelake.maintenance.retentions import FOR_EVER, RULES, RetentionKind, applicable, contradictions, fits
from tests.unit.properties import examples

DAYS = timedelta(days=1)
WELL = {
    RetentionKind.KAFKA: 7 * DAYS,
    RetentionKind.TABLES: 14 * DAYS,
    RetentionKind.LOGS: 30 * DAYS,
    RetentionKind.BACKUPS: 14 * DAYS,
    RetentionKind.BACKUP_INTERVAL: 1 * DAYS,
    RetentionKind.RESTORE_WINDOW: 7 * DAYS,
    RetentionKind.LONGEST_QUERY: timedelta(hours=6),
}
spans = st.dictionaries(
    st.sampled_from(RetentionKind),
    st.one_of(st.just(FOR_EVER), st.timedeltas(timedelta(0), 365 * DAYS)),
    max_size=len(RetentionKind),
)


def test_what_the_stack_keeps_fits_together() -> None:
    assert contradictions(WELL) == []
    assert len(applicable(WELL)) == len(RULES)


def test_a_topic_that_keeps_less_than_the_restore_window_is_named_with_both_times() -> None:
    (found,) = contradictions({**WELL, RetentionKind.KAFKA: timedelta(hours=30)})

    assert found.startswith("kafka (30 h) is shorter than restore_window (7 days): records of the restore window")


def test_what_is_kept_for_ever_is_never_too_short() -> None:
    assert (
        contradictions(
            WELL
            | dict.fromkeys(
                [RetentionKind.KAFKA, RetentionKind.TABLES, RetentionKind.LOGS, RetentionKind.BACKUPS], FOR_EVER
            )
        )
        == []
    )
    assert "logs (14 days) is shorter than tables (for ever)" in " ".join(
        contradictions({RetentionKind.TABLES: FOR_EVER, RetentionKind.LOGS: 14 * DAYS})
    )


@examples(100)
@given(spans)
def test_a_rule_is_only_held_against_spans_that_are_known(known: dict[RetentionKind, timedelta]) -> None:
    broken = [rule for rule in applicable(known) if not fits(rule, known)]

    assert len(contradictions(known)) == len(broken)
    assert all(known[rule.longer] < known[rule.shorter] for rule in broken)


@examples(100)
@given(spans, st.sampled_from([RetentionKind.KAFKA, RetentionKind.LOGS, RetentionKind.BACKUPS]))
def test_keeping_more_of_what_is_only_kept_never_makes_it_worse(
    known: dict[RetentionKind, timedelta], more: RetentionKind
) -> None:
    assert len(contradictions({**known, more: FOR_EVER})) <= len(contradictions({**known, more: timedelta(0)}))
