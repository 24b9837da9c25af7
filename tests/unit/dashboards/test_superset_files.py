"""Superset's dashboards are generated from the contracts: names, units, and columns that exist."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import sqlglot
import yaml
from sqlglot import exp

from gamelake.contract.metrics import load_metrics
from gamelake.model.errors import ContractError
from tools.dashboards.__main__ import FOLDER, REPOSITORY, generate, write, written
from tools.dashboards.assets import Assets, charts_of
from tools.dashboards.datasets import Wanted, declared
from tools.dashboards.pages import DATASETS, PAGES, Chart, SupersetDashboard

FILES = generate()
DOCUMENTS: dict[str, Any] = {path: yaml.safe_load(text) for path, text in FILES.items()}
CONTRACTS, VIEWS = REPOSITORY / "contracts", REPOSITORY / "sql/views"
DECLARED = declared(CONTRACTS, VIEWS)


def documents(folder: str) -> list[dict[str, Any]]:
    return [document for path, document in DOCUMENTS.items() if path.startswith(f"{folder}/")]


def columns_in(sql: str) -> set[str]:
    """The columns that an SQL expression of Trino names."""
    return {column.name for column in sqlglot.parse_one(sql, read="trino").find_all(exp.Column)}


def test_the_files_in_the_repository_are_those_that_are_generated() -> None:
    assert written(FOLDER) == FILES


def test_there_are_four_dashboards_that_are_published() -> None:
    slugs = {each["slug"] for each in documents("dashboards") if each["published"]}

    assert slugs == {"portfolio", "one-game", "live-operations", "experiments"}


def test_queries_run_as_the_person_who_is_logged_in_and_no_file_has_a_password() -> None:
    (database,) = documents("databases")

    assert database["impersonate_user"] is True
    assert database["sqlalchemy_uri"] == "trino://superset@trino:8080/delta"
    assert not any(database[right] for right in ("allow_dml", "allow_ctas", "allow_cvas", "allow_csv_upload"))


@pytest.mark.parametrize("dataset", documents("datasets"), ids=lambda each: each["table_name"])
def test_the_metrics_of_a_dataset_name_its_columns_only(dataset: dict[str, Any]) -> None:
    columns = {column["column_name"] for column in dataset["columns"]}

    assert dataset["main_dttm_col"] in columns
    for metric in dataset["metrics"]:
        assert columns_in(metric["expression"]) <= columns, metric["metric_name"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.slug)
def test_the_conditions_of_a_chart_name_columns_of_its_dataset_only(page: SupersetDashboard) -> None:
    for chart in charts_of(page):
        if chart.where:
            assert columns_in(chart.where) <= DECLARED.tables[chart.dataset].keys(), chart.title


def test_each_chart_of_a_dashboard_has_a_file_and_each_dataset_a_chart() -> None:
    charts = {each["uuid"]: each["dataset_uuid"] for each in documents("charts")}
    placed = [
        node["meta"]["uuid"]
        for page in documents("dashboards")
        for node in page["position"].values()
        if isinstance(node, dict) and node["type"] == "CHART"
    ]

    assert sorted(placed) == sorted(charts)
    assert {each["uuid"] for each in documents("datasets")} == set(charts.values())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.slug)
def test_a_row_of_charts_fits_the_width_of_the_page(page: SupersetDashboard) -> None:
    rows = [row for tab in page.tabs.values() for row in tab]

    assert {sum(chart.width for chart in row) for row in rows} <= {12}


def test_names_and_meanings_of_metrics_are_those_of_the_contract() -> None:
    contract = load_metrics(CONTRACTS / "metrics.yaml")
    daily = next(each for each in documents("datasets") if each["table_name"] == "kpi_daily")
    metrics = {each["metric_name"]: each for each in daily["metrics"]}

    for name in ("players", "bookings", "conversion", "arpdau"):
        assert metrics[name]["verbose_name"] == contract.metric(name).label
        assert metrics[name]["description"] == contract.metric(name).description
    assert metrics["arpdau"]["expression"] == "CAST(sum(bookings) AS double) / nullif(sum(active_players), 0)"
    assert (metrics["bookings"]["d3format"], metrics["conversion"]["d3format"]) == ("$,.2f", ".1%")


def test_a_changed_label_in_the_contract_changes_the_files(tmp_path: Path) -> None:
    shutil.copytree(CONTRACTS, tmp_path / "contracts")
    shutil.copytree(VIEWS, tmp_path / "sql/views")
    metrics = tmp_path / "contracts/metrics.yaml"
    metrics.write_text(metrics.read_text().replace("label: Payers\n", "label: Buyers\n"))

    changed = generate(tmp_path)

    assert {path for path in FILES if changed[path] != FILES[path]} == {"datasets/Trino/gold.kpi_daily.yaml"}
    assert "verbose_name: Buyers" in changed["datasets/Trino/gold.kpi_daily.yaml"]


@pytest.mark.parametrize(
    ("table", "of_metrics", "problem"),
    [
        ("gold.no_table", {}, "there is no table or view 'gold.no_table'"),
        ("gold.kpi_daily", {"no_column": "players"}, "gold.kpi_daily has no column no_column"),
        ("gold.kpi_daily", {"payers": "no_metric"}, "metrics.yaml has no metric 'no_metric'"),
    ],
)
def test_a_table_column_or_metric_that_does_not_exist_is_refused(
    table: str, of_metrics: dict[str, str], problem: str
) -> None:
    with pytest.raises(ContractError, match=problem):
        DECLARED.dataset(table, Wanted(of_metrics))


def test_a_chart_with_a_figure_that_its_dataset_lacks_is_refused() -> None:
    datasets = {table: DECLARED.dataset(table, wanted) for table, wanted in DATASETS.items()}
    wrong = Chart("Wrong", "number", "gold.kpi_daily", ("no_figure",), width=12)
    page = SupersetDashboard("p", "P", "A page.", {"": ((wrong,),)})

    with pytest.raises(ContractError, match="needs no_figure, which gold"):
        Assets(datasets, (page,)).files()


def test_a_file_that_is_not_generated_any_more_is_removed(tmp_path: Path) -> None:
    write({"charts/old.yaml": "a\n", "metadata.yaml": "b\n"}, tmp_path)
    write({"metadata.yaml": "c\n"}, tmp_path)

    assert written(tmp_path) == {"metadata.yaml": "c\n"}
