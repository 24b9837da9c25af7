"""The documents: they have the latest results of each benchmark, and describe each pipeline."""

import re
import shutil
from pathlib import Path

import pytest

from benchmarks.approaches import APPROACHES
from benchmarks.documents import APPENDIX, PAGE, MarkersMissingError, put_between_markers, subjects_table
from benchmarks.ingestion import PIPELINES
from benchmarks.report import DOCUMENTED
from benchmarks.results import BenchmarkError, Measurement, Results, latest, load, save
from tests.unit.benchmarks.test_goals import results
from tools.embedded.service import REPOSITORY

DOCS = REPOSITORY / "docs"


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_documents_and_charts_have_the_latest_results(name: str, tmp_path: Path) -> None:
    report = DOCUMENTED[name]
    documents = [PAGE, APPENDIX, *map(Path, report.charts)]
    for document in (PAGE, APPENDIX):
        (tmp_path / document).parent.mkdir(exist_ok=True)
        shutil.copy(DOCS / document, tmp_path / document)

    report.write(latest(name), tmp_path)

    for document in documents:
        assert (tmp_path / document).read_text() == (DOCS / document).read_text(), document


def test_each_pipeline_of_the_results_is_one_that_can_be_measured_again() -> None:
    labels = [approach.label for approach in APPROACHES.values()]

    assert sorted(latest("ingestion").subjects(PIPELINES)) == sorted(labels)
    assert len(set(labels)) == len(labels)


@pytest.mark.parametrize("label", [approach.label for approach in APPROACHES.values()])
def test_each_pipeline_is_described(label: str) -> None:
    _, _, described = (DOCS / APPENDIX).read_text().partition("| pipeline | what it does |")
    name = re.sub(r"^fan-out, \d+ \+ 2 tables$", "fan-out, N + 2 tables", label)
    name = re.sub(r"^.*, 1-KB events$", "..., 1-KB events", name)

    assert f"\n| {name} | " in described


def some_results() -> Results:
    return results(
        Measurement(part="race", subject="ours", values={"s": 1.5, "files": 3}),
        Measurement(part="race", subject="peer", values={"s": 4}),
        Measurement(part="race", subject="ours", values={"s": 2.5, "files": 5}, round=2),
    )


def test_results_can_be_read_again(tmp_path: Path) -> None:
    assert load(save(some_results(), tmp_path)) == some_results()
    assert latest("test", tmp_path) == some_results()
    with pytest.raises(BenchmarkError, match="no results of another"):
        latest("another", tmp_path)


def test_a_table_has_the_spread_of_its_first_figure_and_medians_of_the_others() -> None:
    assert subjects_table("race", "way")(some_results()).splitlines() == [
        "| way | s: median (least to greatest) | files |",
        "| --- | --- | --- |",
        "| ours | 2 (1.50 to 2.50) | 4 |",
        "| peer | 4 |  |",
    ]


def test_a_document_without_the_comments_is_an_error_that_names_them(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("no comments")

    with pytest.raises(MarkersMissingError, match="<!-- measured: gold: begin -->"):
        put_between_markers(tmp_path / "page.md", "gold", ["a table"])
