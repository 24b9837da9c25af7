"""The benchmark of a year simulates days whose retentions really delete, and finds figures that grow."""

from datetime import UTC, datetime, timedelta

import pytest

from benchmarks.year.__main__ import measure
from benchmarks.year.figures import GrowthBound, TenthFigures, YearFigures, rises_of
from benchmarks.year.plan import BEGINNING, FULL_YEAR, SimulatedClock, YearPlan

DAYS, BATCHES_PER_DAY, TABLES = 5, 4, 3


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> YearFigures:
    plan = YearPlan(batches=DAYS * BATCHES_PER_DAY, tables=TABLES, batches_per_day=BATCHES_PER_DAY)
    return measure(tmp_path_factory.mktemp("year"), plan, lambda _: None)


def test_all_maintenance_of_the_schedule_runs_and_succeeds(figures: YearFigures) -> None:
    ran = {task for tenth in figures.tenths for task in tenth.tasks}

    assert figures.failed == ()
    assert ran >= {"compact_daily", "vacuum", "clean_logs", "start", "verify"}


def test_what_is_older_than_the_retention_is_deleted(figures: YearFigures) -> None:
    last = figures.tenths[-1]

    # One for each day that is compacted; the day before may not be yet.
    assert last.live_files <= TABLES * (DAYS - 2 + BATCHES_PER_DAY)
    assert last.kinds["data files"].objects < TABLES * DAYS * BATCHES_PER_DAY
    assert last.kinds["manifests"].objects <= 2 * BATCHES_PER_DAY


def test_each_task_is_measured_in_a_process_of_its_own(figures: YearFigures) -> None:
    runs = [tenth.tasks["vacuum"] for tenth in figures.tenths if "vacuum" in tenth.tasks]

    assert all(0 < each.grown_mib < 500 for each in runs)
    assert all(each.listed > TABLES for each in runs)


def tenths_with(live_files: list[int], listed: list[float]) -> list[TenthFigures]:
    return [
        TenthFigures(
            batches=1, decide_ms=1, commit_ms=1, cpu_ms=1, listed=figure, driver_mib=1, tasks={}, kinds={},
            live_files=live,
        )
        for live, figure in zip(live_files, listed, strict=True)
    ]  # fmt: skip


def test_a_figure_that_grows_after_the_warm_up_is_above_its_bound() -> None:
    bound = GrowthBound("listed", lambda tenth: tenth.listed, 5.0)
    growing = tenths_with([1] * 10, [10.0 * number for number in range(1, 11)])
    flat = tenths_with([1] * 10, [1.0, 50.0, *[100.0] * 8])

    assert not bound.is_kept(rises_of([bound], growing))
    assert bound.is_kept(rises_of([bound], flat))


@pytest.mark.parametrize(("times", "kept"), [(1.0, True), (2.0, False)], ids=["as they do", "with their square"])
def test_a_figure_of_live_files_may_grow_as_they_do(times: float, kept: bool) -> None:
    bound = GrowthBound("listed", lambda tenth: tenth.listed, 5.0, with_live_files=True)
    tenths = tenths_with([*range(1, 11)], [float(number) ** times for number in range(1, 11)])

    assert bound.is_kept(rises_of([bound], tenths)) is kept


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
