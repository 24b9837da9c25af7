"""The report: all pipelines have a line, a chart has comparable ones, and the document has what the results say."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from benchmarks.approaches import APPROACHES, LONG_ALONE, LONG_DUCKDB
from benchmarks.report import LABELS, write_report
from benchmarks.results import Lap, Measurement, Results, load
from benchmarks.targets import TARGETS
from tools.embedded.service import REPOSITORY

DOCUMENT = REPOSITORY / "docs" / "performance.md"
LATEST = load(REPOSITORY / "benchmarks" / "results" / "latest.json")


@dataclass(frozen=True)
class Report:
    """The document and the chart."""

    text: str
    chart: str


def report_of(results: Results, folder: Path) -> Report:
    shutil.copy(DOCUMENT, folder)
    write_report(results, folder)
    return Report((folder / DOCUMENT.name).read_text(), (folder / "performance.svg").read_text())


def test_the_document_and_its_chart_have_the_latest_results(tmp_path: Path) -> None:
    report = report_of(LATEST, tmp_path)

    assert report.text == DOCUMENT.read_text()
    assert report.chart == (REPOSITORY / "docs" / "performance.svg").read_text()


def test_each_target_is_in_the_document_with_its_verdict() -> None:
    lines = DOCUMENT.read_text().splitlines()

    for target in TARGETS:
        expected = f"| {target.text} | {target.bound_text} | {target.found(LATEST)} | {target.verdict(LATEST)} |"
        assert expected in lines


def test_each_approach_has_a_label() -> None:
    assert LABELS.keys() == APPROACHES.keys()
    assert len(set(LABELS.values())) == len(LABELS)


@pytest.mark.parametrize("label", LABELS.values())
def test_each_pipeline_is_described(label: str) -> None:
    _, _, described = DOCUMENT.read_text().partition("| pipeline | what it does |")
    name = re.sub(r"^fan-out, \d+ \+ 2 tables$", "fan-out, N + 2 tables", label)
    name = re.sub(r"^.*, 1-KB events$", "..., 1-KB events", name)

    assert f"\n| {name} | " in described


def test_rates_of_longer_events_are_in_the_table_and_not_on_the_chart(tmp_path: Path) -> None:
    lap = Lap(seconds=4, cpu_seconds=5, kafka_cpu_seconds=1, other_cpu_seconds=0)
    longer = [
        Measurement(way=way, round=1, records=100_000, lap=lap, value_bytes=100_000_000)
        for way in (LONG_ALONE, LONG_DUCKDB)
    ]
    others = [each for each in LATEST.measurements if each.way not in (LONG_ALONE, LONG_DUCKDB)]
    results = msgspec.structs.replace(LATEST, measurements=(*others, *longer))

    report = report_of(results, tmp_path)

    line = "| 100,000 | 25,000 (25,000 to 25,000) | 25,000 | 25.0 | 20.0 | 50.00 | 10.00 |  |  |  |"
    assert f"| {LABELS[LONG_ALONE]} {line}" in report.text
    assert f"| {LABELS[LONG_DUCKDB]} {line}" in report.text
    assert "1-KB" not in report.chart
