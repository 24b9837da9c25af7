"""`monitoring/metrics.yaml` says what the code exposes, and its page explains all of it."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.metrics import MetricWrapperBase

from gamelake.observability.metrics.container import CONTAINER_MEMORY, CONTAINER_MEMORY_LIMIT
from gamelake.observability.metrics.endpoint import CERTIFICATE_EXPIRY
from gamelake.observability.metrics.files import FilesMetric
from gamelake.observability.metrics.gold import GoldMetric
from gamelake.observability.metrics.instruments import Metric
from gamelake.observability.metrics.kpis import KpiMetric
from gamelake.observability.metrics.live_ops import LiveOpsMetric
from gamelake.observability.metrics.maintenance import MaintenanceMetric
from services.gateway import metrics as gateway

REPOSITORY = Path(__file__).resolve().parents[2]
DECLARED = yaml.safe_load((REPOSITORY / "monitoring" / "metrics.yaml").read_text(encoding="utf-8"))
PAGE = (REPOSITORY / "docs" / "monitoring.md").read_text(encoding="utf-8")
METRICS: list[dict[str, Any]] = DECLARED["metrics"]
SOURCES = {
    "endpoint",
    "ingest-events",
    "audit",
    "catalog",
    "delivery",
    "files",
    "gold",
    "kpis",
    "ingest",
    "live-ops",
    "maintenance",
    "portal",
}
UNITS = {
    "seconds",
    "offsets",
    "records",
    "rows",
    "files",
    "bytes",
    "failures",
    "runs",
    "tables",
    "requests",
    "events",
    "players",
    "sessions",
    "dollars",
    "version",
    "ratio",
    "boolean",
    "timestamp",
}


def test_the_ingest_jobs_metrics_are_the_declared_ones_and_the_reverse() -> None:
    in_code = {each.value.name: (each.value.kind.value, list(each.value.labels)) for each in Metric}

    declared = {each["name"]: (each["type"], each["labels"]) for each in METRICS if each["source"] == "ingest-events"}

    assert in_code == declared


def test_the_endpoints_metrics_are_the_declared_ones() -> None:
    declared = [each["name"] for each in METRICS if each["source"] == "endpoint"]

    assert declared == [CERTIFICATE_EXPIRY, CONTAINER_MEMORY, CONTAINER_MEMORY_LIMIT]


def test_the_gold_jobs_metrics_are_the_declared_ones_and_the_reverse() -> None:
    in_code = {each.value.name: (each.value.kind.value, list(each.value.labels)) for each in GoldMetric}

    declared = {each["name"]: (each["type"], each["labels"]) for each in METRICS if each["source"] == "gold"}

    assert in_code == declared


def test_the_metrics_of_files_are_the_declared_ones_and_the_reverse() -> None:
    in_code = {each.value.name: (each.value.kind.value, list(each.value.labels)) for each in FilesMetric}

    declared = {each["name"]: (each["type"], each["labels"]) for each in METRICS if each["source"] == "files"}

    assert in_code == declared


def test_the_kpi_querys_metrics_are_the_declared_ones_and_the_reverse() -> None:
    in_code = {each.value.name: (each.value.kind.value, list(each.value.labels)) for each in KpiMetric}

    declared = {each["name"]: (each["type"], each["labels"]) for each in METRICS if each["source"] == "kpis"}

    assert in_code == declared


def test_the_metrics_of_live_operations_are_the_declared_ones_and_the_reverse() -> None:
    in_code = {each.value.name: (each.value.kind.value, list(each.value.labels)) for each in LiveOpsMetric}

    declared = {each["name"]: (each["type"], each["labels"]) for each in METRICS if each["source"] == "live-ops"}

    assert in_code == declared


def test_the_metrics_of_maintenance_are_the_declared_ones_and_the_reverse() -> None:
    in_code = {each.value.name: (each.value.kind.value, list(each.value.labels)) for each in MaintenanceMetric}

    declared = {each["name"]: (each["type"], each["labels"]) for each in METRICS if each["source"] == "maintenance"}

    assert in_code == declared


def test_the_gateways_metrics_are_the_declared_ones_and_the_reverse() -> None:
    found = [
        family for each in vars(gateway).values() if isinstance(each, MetricWrapperBase) for family in each.describe()
    ]
    in_code = {f"{each.name}_total" if each.type == "counter" else each.name: each.type for each in found}

    declared = {each["name"]: each["type"] for each in METRICS if each["source"] == "ingest"}

    assert in_code == declared


def test_every_metric_is_declared_once_and_with_all_that_belongs_to_it() -> None:
    names = [each["name"] for each in METRICS]

    assert len(names) == len(set(names))
    for each in METRICS:
        assert each.keys() - {"estimate"} == {"name", "type", "unit", "labels", "source", "meaning"}
        assert each["source"] in SOURCES
        assert each["unit"] in UNITS
        assert each["meaning"].strip()


def test_every_label_is_explained_and_the_reverse() -> None:
    assert {label for each in METRICS for label in each["labels"]} == DECLARED["labels"].keys()


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: str(metric["name"]))
def test_a_name_follows_prometheus_rules(metric: dict[str, Any]) -> None:
    name, unit = metric["name"], metric["unit"]

    assert re.fullmatch(r"gamelake(_[a-z]+)+", name)
    assert name.endswith("_total") == (metric["type"] == "counter")
    assert name.endswith("_timestamp_seconds") == (unit == "timestamp")
    assert ("_seconds" in name) == (unit in ("seconds", "timestamp"))
    assert name.endswith("_ratio") == (unit == "ratio")


def test_the_page_names_every_metric_and_no_other() -> None:
    named = set(re.findall(r"`(gamelake_[a-z_]+)`", PAGE))

    assert named == {each["name"] for each in METRICS}


def test_the_page_says_which_figures_are_estimates() -> None:
    rows = {row[0]: row for row in re.findall(r"^\| `(gamelake_[a-z_]+)` \|(.*)$", PAGE, re.MULTILINE)}

    for each in METRICS:
        assert ("estimate" in rows[each["name"]][1].lower()) == each.get("estimate", False)
