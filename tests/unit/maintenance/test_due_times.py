"""When a task runs next: in time, once for all missed runs, and sooner after a failure."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelake.contract.schedule import ScheduledTask
from gamelake.maintenance.run_records import TaskRecord, WorkDone
from gamelake.maintenance.scheduler import FIRST_RETRY, due_at, jitter_of, next_turn
from tests.unit.properties import examples

START = datetime(2026, 11, 22, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
seconds = st.timedeltas(timedelta(seconds=1), timedelta(days=20))
whens = st.sampled_from(["daily at 01:15", "weekly on monday at 23:59", "every 6 hours", "every 45 minutes"])
tasks = st.builds(
    lambda when, jitter: ScheduledTask(name="a", job="compact", when=when, jitter_minutes=jitter),
    whens,
    st.integers(0, 44),
)


def a_task(when: str = "daily at 01:15", jitter: int = 0) -> ScheduledTask:
    return ScheduledTask(name="a", job="compact", when=when, jitter_minutes=jitter)


def after(record: TaskRecord, at: datetime, *, lasts: timedelta = timedelta(0), well: bool = True) -> TaskRecord:
    begun = record.begun(at)
    return begun.succeeded(at + lasts, WorkDone()) if well else begun.failed(at + lasts, WorkDone())


def test_a_task_that_is_new_in_the_schedule_waits_for_its_time() -> None:
    assert due_at(a_task(), TaskRecord(known_since=START), "lake", START) == datetime(2026, 11, 23, 1, 15, tzinfo=UTC)


def test_turns_that_were_missed_are_made_up_for_once() -> None:
    record = after(TaskRecord(known_since=START), START)
    awake = START + timedelta(days=10)

    assert due_at(a_task(), record, "lake", awake) < awake
    assert due_at(a_task(), after(record, awake), "lake", awake) == datetime(2026, 12, 3, 1, 15, tzinfo=UTC)


def test_a_task_that_failed_is_tried_again_later_each_time_and_at_its_scheduled_time_at_the_latest() -> None:
    record = TaskRecord(known_since=START)
    now, pauses = START, []
    for _ in range(8):
        record = after(record, now, lasts=timedelta(minutes=1), well=False)
        due = due_at(a_task(), record, "lake", now)
        pauses.append(due - now - timedelta(minutes=1))
        now = due

    assert pauses[:4] == [FIRST_RETRY, 2 * FIRST_RETRY, 4 * FIRST_RETRY, 8 * FIRST_RETRY]
    assert max(pauses) <= 6 * HOUR
    assert due_at(a_task(), after(record, now), "lake", now) > now + FIRST_RETRY


def test_a_run_that_was_killed_counts_as_failed_and_is_tried_again() -> None:
    record = TaskRecord(known_since=START).begun(START)

    assert record.is_open
    assert due_at(a_task(), record, "lake", START) == START + FIRST_RETRY
    assert record.begun(START + HOUR).runs_failed == 1
    assert record.begun(START + HOUR).failures == 2


def test_what_runs_did_adds_up_whether_they_ended_well_or_not() -> None:
    record = TaskRecord(known_since=START).begun(START).failed(START, WorkDone(compacted_files=2))
    record = record.begun(START).succeeded(START + HOUR, WorkDone(compacted_files=3, deleted_bytes=9))

    assert record.done == WorkDone(compacted_files=5, deleted_bytes=9)
    assert (record.runs_ok, record.runs_failed, record.failures, record.seconds) == (1, 1, 0, 3600)
    assert record.succeeded_at == START + HOUR


@examples(100)
@given(tasks, seconds)
def test_the_next_turn_is_later_and_comes_within_a_period_and_its_jitter(
    scheduled: ScheduledTask, past: timedelta
) -> None:
    moment = START + past

    turn = next_turn(scheduled, moment, "lake")

    assert moment < turn <= moment + scheduled.cadence.period + scheduled.jitter


@examples(100)
@given(tasks, seconds)
def test_no_turn_is_skipped_or_taken_twice_whatever_the_jitter(scheduled: ScheduledTask, past: timedelta) -> None:
    turn, found = START + past, []
    for _ in range(8):
        turn = next_turn(scheduled, turn, "lake")
        found.append(turn)

    first = scheduled.cadence.after(START + past - scheduled.jitter)
    expected = [first + number * scheduled.cadence.period for number in range(9)]
    all_turns = [at + jitter_of(scheduled, at, "lake") for at in expected]
    assert found == [at for at in all_turns if at > START + past][:8]


@examples(100)
@given(tasks, st.text(max_size=5))
def test_jitter_is_the_same_for_every_process_and_never_more_than_was_said(scheduled: ScheduledTask, seed: str) -> None:
    drawn = jitter_of(scheduled, START, seed)

    assert drawn == jitter_of(scheduled, START, seed)
    assert timedelta(0) <= drawn <= scheduled.jitter


def test_lakehouses_of_one_schedule_do_not_begin_at_once() -> None:
    scheduled = a_task(jitter=60)

    assert (
        len({due_at(scheduled, TaskRecord(known_since=START), f"s3://lake-{each}", START) for each in range(20)}) == 20
    )


def test_a_clock_that_goes_back_by_minutes_runs_a_task_once_for_each_scheduled_time() -> None:
    due = datetime(2026, 11, 23, 1, 15, tzinfo=UTC)
    ran_ahead = after(TaskRecord(known_since=START), due)
    corrected = due - timedelta(minutes=10)

    assert due_at(a_task(), ran_ahead, "lake", corrected) == due + timedelta(days=1)


def test_a_run_during_which_the_clock_goes_back_has_ended() -> None:
    record = after(TaskRecord(known_since=START), START, lasts=timedelta(minutes=-10))

    assert (record.is_open, record.failures_so_far, record.seconds) == (False, 0, 0)
    assert record.begun(START + HOUR).runs_failed == 0


@pytest.mark.parametrize("when", ["daily at 01:15", "every 30 minutes"])
@pytest.mark.parametrize("well", [True, False])
def test_a_task_whose_last_run_is_recorded_far_in_the_future_is_due_now(when: str, *, well: bool) -> None:
    ran_in_the_future = after(TaskRecord(known_since=START), START + timedelta(days=300), well=well)

    assert due_at(a_task(when), ran_in_the_future, "lake", START) == START
    assert due_at(a_task(when), after(ran_in_the_future, START), "lake", START) > START


def test_a_task_that_is_first_listed_by_a_clock_far_in_the_future_runs_now_and_then_at_its_times() -> None:
    listed = TaskRecord(known_since=START + timedelta(days=300))

    assert due_at(a_task(), listed, "lake", START) == START
    assert due_at(a_task(), after(listed, START), "lake", START) == datetime(2026, 11, 23, 1, 15, tzinfo=UTC)


@examples(100)
@given(tasks, st.lists(st.tuples(st.timedeltas(timedelta(0), timedelta(days=3)), st.booleans()), max_size=12))
def test_a_scheduler_that_sleeps_as_it_likes_never_runs_a_task_twice_for_one_scheduled_time(
    scheduled: ScheduledTask, naps: list[tuple[timedelta, bool]]
) -> None:
    record, now, runs = TaskRecord(known_since=START), START, []
    for nap, well in naps:
        now += nap
        if due_at(scheduled, record, "lake", now) <= now:
            record = after(record, now, well=well)
            runs.append((now, well))
        assert due_at(scheduled, record, "lake", now) > now

    good = [at for at, well in runs if well]
    for sooner, later in pairwise(good):
        assert next_turn(scheduled, sooner, "lake") <= later or any(
            sooner < at < later for at, well in runs if not well
        )
