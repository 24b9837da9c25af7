"""The schedule says what it means, and a mistake in it is named with its line before anything runs."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamelake.contract.schedule import Schedule, load_schedule, parse_cadence
from gamelake.model.errors import ContractError
from tests.unit.properties import examples

OURS = Path("contracts/schedule.yaml")
moments = st.integers(0, 4_000_000_000).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
cadences = st.one_of(
    st.builds("daily at {:02d}:{:02d}".format, st.integers(0, 23), st.integers(0, 59)),
    st.builds(
        "weekly on {} at {:02d}:{:02d}".format,
        st.sampled_from(["monday", "wednesday", "sunday"]),
        st.integers(0, 23),
        st.integers(0, 59),
    ),
    st.builds("every {} {}".format, st.integers(1, 9_999), st.sampled_from(["minutes", "hours"])),
)


def load(tmp_path: Path, *entries: str) -> Schedule:
    path = tmp_path / "schedule.yaml"
    path.write_text("tasks:\n" + "".join(f"  - {{{entry}}}\n" for entry in entries))
    return load_schedule(path)


def test_the_platforms_own_schedule_compacts_before_it_vacuums() -> None:
    tasks = {each.name: each for each in load_schedule(OURS).tasks}

    midnight = datetime(2026, 11, 22, tzinfo=UTC)
    turns = {name: each.cadence.after(midnight) for name, each in tasks.items()}
    assert turns["compact_daily"] + tasks["compact_daily"].jitter < turns["vacuum"]
    assert tasks["compact_weekly"].command == "python -m jobs.compact --scope weekly --no-spark --rest 3"


@pytest.mark.parametrize(
    ("text", "after", "expected"),
    [
        ("daily at 01:15", "2026-11-22T01:14", "2026-11-22T01:15"),
        ("daily at 01:15", "2026-11-22T01:15", "2026-11-23T01:15"),
        ("weekly on sunday at 02:30", "2026-11-20T00:00", "2026-11-22T02:30"),
        ("weekly on sunday at 02:30", "2026-11-22T02:30", "2026-11-29T02:30"),
        ("every 6 hours", "2026-11-22T05:59", "2026-11-22T06:00"),
        ("Every  30 minutes", "2026-11-22T05:59", "2026-11-22T06:00"),
    ],
)
def test_a_cadence_means_what_it_says(text: str, after: str, expected: str) -> None:
    found = parse_cadence(text).after(datetime.fromisoformat(after).replace(tzinfo=UTC))

    assert found == datetime.fromisoformat(expected).replace(tzinfo=UTC)


@examples(100)
@given(cadences, moments)
def test_the_next_moment_is_later_and_no_further_than_one_period(text: str, moment: datetime) -> None:
    cadence = parse_cadence(text)

    assert moment < cadence.after(moment) <= moment + cadence.period
    assert cadence.after(cadence.after(moment)) == cadence.after(moment) + cadence.period


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (
            "name: a, when: daily at 24:00, job: compact",
            "'daily at 24:00' is not a time of a schedule; say 'daily at 01:15'",
        ),
        ("name: a, when: weekly at 02:00, job: compact", "'weekly at 02:00' is not a time of a schedule"),
        ("name: a, when: every 0 hours, job: compact", "'every 0 hours' is not a time of a schedule"),
        ("name: a, when: every 10 minutes, jitter_minutes: 10, job: compact", "would skip a run; keep it below"),
        ("name: a, when: daily at 01:00, job: ../rm", "Expected `str` matching regex"),
        ("name: a, when: daily at 01:00", "missing required field `job`"),
        ("name: a, when: daily at 01:00, job: compact, arguments: --no-spark", "Expected `array`"),
        ("name: a, when: daily at 01:00, job: compact, minute: 3", "unknown key 'minute'"),
        ("name: a, when: daily at 01:00, job: compact, at_most_hours: 0", "> 0.0"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, entry: str, problem: str) -> None:
    with pytest.raises(ContractError) as raised:
        load(tmp_path, "name: good, when: every 1 hours, job: vacuum", entry)

    assert problem in str(raised.value)
    assert "schedule.yaml:3:" in str(raised.value)


def test_two_tasks_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="'a' is listed twice"):
        load(tmp_path, *["name: a, when: every 1 hours, job: vacuum"] * 2)


def test_a_long_run_and_a_jitter_are_bounded_by_default(tmp_path: Path) -> None:
    (found,) = load(tmp_path, "name: a, when: every 1 hours, job: vacuum").tasks

    assert (found.jitter, found.at_most) == (timedelta(0), timedelta(hours=6))


def test_the_manual_has_a_line_for_every_task_and_no_other() -> None:
    section = Path("docs/operations.md").read_text().split("\n## Scheduled maintenance\n")[1].split("\n## ")[0]

    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [each.name for each in load_schedule(OURS).tasks]
