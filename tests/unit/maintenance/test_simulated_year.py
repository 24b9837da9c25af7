"""The benchmark of a year simulates days whose retentions really delete, and finds figures that grow."""

from datetime import UTC, datetime, timedelta

import pytest

from benchmarks.harness import Run
from benchmarks.results import Machine, Measurement, Results
from benchmarks.year.__main__ import measure
from benchmarks.year.figures import BATCH, LISTED, LIVE_FILES, MEMORY, YEAR, rise_of
from benchmarks.year.plan import BEGINNING, FULL_YEAR, SimulatedClock, YearPlan

DAYS, BATCHES_PER_DAY, TABLES = 5, 4, 3


def results(*samples: Measurement) -> Results:
    machine = Machine(cores=2, cpu_model="")
    return Results(benchmark="year", measured_at="", commit="", machine=machine, settings={}, samples=samples)


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A short year; a run of a task that fails would be an error."""
    plan = YearPlan(batches=DAYS * BATCHES_PER_DAY, tables=TABLES, batches_per_day=BATCHES_PER_DAY)
    run = Run(settings=plan, folder=tmp_path_factory.mktemp("year"), emit=lambda _: None)
    return results(*measure(run))


def test_all_maintenance_of_the_schedule_runs(year: Results) -> None:
    assert {"compact_daily", "vacuum", "clean_logs", "start", "verify"} <= set(year.subjects(YEAR))


def test_what_is_older_than_the_retention_is_deleted(year: Results) -> None:
    # One for each day that is compacted; the day before may not be yet.
    assert year.values(YEAR, LIVE_FILES, "files")[-1] <= TABLES * (DAYS - 2 + BATCHES_PER_DAY)
    assert year.values(YEAR, "data files", "objects")[-1] < TABLES * DAYS * BATCHES_PER_DAY
    assert year.values(YEAR, "manifests", "objects")[-1] <= 2 * BATCHES_PER_DAY


def test_each_task_is_measured_in_a_process_of_its_own(year: Results) -> None:
    assert all(0 < each < 500 for each in year.values(YEAR, "vacuum", MEMORY))
    assert all(each > TABLES for each in year.values(YEAR, "vacuum", LISTED))


def tenths_with(live_files: list[int], listed: list[float]) -> Results:
    return results(
        *(
            Measurement(part=YEAR, subject=subject, round=number, values={figure: value})
            for subject, figure, values in ((LIVE_FILES, "files", live_files), (BATCH, LISTED, listed))
            for number, value in enumerate(values, start=1)
        )
    )


def test_a_figure_that_grows_after_the_warm_up_rises() -> None:
    listed = rise_of(BATCH, LISTED)

    (growing,) = listed(tenths_with([1] * 10, [10.0 * number for number in range(1, 11)]))
    assert growing > 5
    assert listed(tenths_with([1] * 10, [1.0, 50.0, *[100.0] * 8])) == [0]
    assert listed(tenths_with([1] * 4, [1.0, 50.0, 100.0, 100.0])) == []


@pytest.mark.parametrize(("times", "kept"), [(1.0, True), (2.0, False)], ids=["as they do", "with their square"])
def test_a_figure_of_live_files_may_grow_as_they_do(times: float, kept: bool) -> None:
    (rise,) = rise_of(BATCH, LISTED, beyond_live_files=True)(
        tenths_with([*range(1, 11)], [float(number) ** times for number in range(1, 11)])
    )

    assert (rise <= 5) is kept


def test_a_moment_of_the_simulated_past_is_when_its_batch_began() -> None:
    plan = YearPlan(batches=FULL_YEAR, batches_per_day=2)
    clock = SimulatedClock(plan)
    began = []
    for _ in range(5):
        clock.next_batch()
        began.append(datetime.now(UTC))

    assert clock.now() == BEGINNING + timedelta(days=2)
    assert began[0] <= clock.real(BEGINNING + timedelta(hours=1)) <= began[1]
    assert clock.real(BEGINNING - timedelta(days=1)) <= began[0]


def test_a_shorter_year_has_shorter_retentions() -> None:
    assert YearPlan(batches=FULL_YEAR // 2).retention == YearPlan().retention / 2
