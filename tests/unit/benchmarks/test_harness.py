"""The harness: options, rounds, results in a file, exit codes, and which runs are written into the documents."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from benchmarks import harness
from benchmarks.documents import Report
from benchmarks.goals import Goal, figure_of
from benchmarks.harness import Benchmark, Run, alternate, main, option
from benchmarks.results import BenchmarkError, Measurement, Results, Values, latest, load


@dataclass(frozen=True, slots=True)
class Settings:
    """An option of each kind."""

    rows: int = option(10, "rows")
    pace: float = option(0.5, "seconds")
    sizes: tuple[int, ...] = option((1, 2), "sizes")
    only: tuple[str, ...] = option((), "parts", ("one", "two"))
    keep: bool = option(default=False, text="keep the files")


def measure(run: Run[Settings]) -> Iterator[Measurement]:
    assert list(run.folder.iterdir()) == []
    if not run.settings.rows:
        raise BenchmarkError("there are no rows")
    yield Measurement(part="rows", subject="table", values={"rows": np.float64(run.settings.rows + 0.00001)})


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Results]:
    """The results that were written into the documents; the default folders are those of the test."""
    found: list[Results] = []
    monkeypatch.setattr(harness, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(harness, "PARTIAL", tmp_path / "partial")
    monkeypatch.setattr(Report, "write", lambda _, results, docs: found.append(results))
    return found


def a_benchmark(*, needs_goals: bool = False) -> Benchmark[Settings]:
    return Benchmark(
        name="test",
        measures="Measure rows.",
        settings=Settings(),
        quick=Settings(rows=2),
        measure=measure,
        goals=(Goal("rows", (5,), figure_of("rows", "table", "rows")),),
        report=Report(),
        is_partial=lambda settings: bool(settings.only),
        needs_goals=needs_goals,
    )


def test_each_setting_is_an_option(written: list[Results], tmp_path: Path) -> None:
    words = ["--rows", "7", "--pace", "1.5", "--sizes", "3", "4", "--only", "two", "--keep", "--out", str(tmp_path)]

    assert main(a_benchmark(), words) == 0

    (path,) = tmp_path.glob("part-test-*.json")
    assert load(path).settings == {"rows": 7, "pace": 1.5, "sizes": [3, 4], "only": ["two"], "keep": True}
    assert load(path).values("rows", "table", "rows") == [7]


def test_a_whole_run_is_stored_as_the_latest_results_and_written_into_the_documents(
    written: list[Results], tmp_path: Path
) -> None:
    assert main(a_benchmark(), []) == 0

    assert [latest("test", tmp_path / "results")] == [
        load(path) for path in (tmp_path / "results").glob("test-2*.json")
    ]
    assert [results.values("rows", "table", "rows") for results in written] == [[10]]


@pytest.mark.parametrize("words", [["--quick"], ["--only", "one"]])
def test_a_partial_run_leaves_documents_and_results_unchanged(
    written: list[Results], tmp_path: Path, words: list[str]
) -> None:
    assert main(a_benchmark(), words) == 0

    assert written == []
    assert not (tmp_path / "results").exists()
    assert len(list((tmp_path / "partial").glob("part-test-*.json"))) == 1


def test_options_after_quick_win(written: list[Results], tmp_path: Path) -> None:
    main(a_benchmark(), ["--quick", "--sizes", "9"])

    (path,) = (tmp_path / "partial").glob("*.json")
    assert load(path).settings["rows"] == 2
    assert load(path).settings["sizes"] == [9]


def test_a_benchmark_that_fails_exits_with_1_and_keeps_its_files(
    written: list[Results], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(a_benchmark(), ["--rows", "0"]) == 1

    assert "benchmarks test: there are no rows" in capsys.readouterr().err
    assert len(list((tmp_path / "partial").iterdir())) == 1
    assert written == []


def test_a_missed_goal_is_an_error_only_where_goals_are_needed_and_much_is_measured(written: list[Results]) -> None:
    assert main(a_benchmark(), ["--rows", "2"]) == 0
    assert main(a_benchmark(needs_goals=True), ["--rows", "2"]) == 1
    assert main(a_benchmark(needs_goals=True), ["--quick"]) == 0
    assert main(a_benchmark(needs_goals=True), []) == 0


def test_each_round_measures_all_subjects_in_the_opposite_order_and_warm_ups_do_not_count() -> None:
    order: list[tuple[str, int]] = []

    def way(name: str, number: int) -> Values:
        order.append((name, number))
        return {"s": number}

    ways = {name: lambda number, name=name: way(name, number) for name in ("ours", "peer")}
    samples = list(alternate("race", ways, 2, lambda _: None))

    assert order == [("peer", 0), ("ours", 0), ("ours", 1), ("peer", 1), ("peer", 2), ("ours", 2)]
    assert [(each.subject, each.round) for each in samples] == order[2:]
