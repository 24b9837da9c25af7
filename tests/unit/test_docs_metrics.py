"""Programs expose the metrics that `declared.yaml` declares, and the page about monitoring explains all of them."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import REGISTRY, CollectorRegistry, generate_latest

from gamelake.observability.metrics.container import ContainerMemoryCollector
from gamelake.observability.metrics.declared import MetricDeclaration, declarations, metrics_file
from gamelake.observability.metrics.endpoint import CertificateExpiryCollector, Heartbeat
from gamelake.observability.metrics.files import FilesTelemetry
from gamelake.observability.metrics.instruments import Instruments
from gamelake.observability.metrics.maintenance import MaintenanceTelemetry
from gamelake.observability.metrics.serving.experiments import ExperimentTelemetry
from gamelake.observability.metrics.serving.gold import GoldTelemetry
from gamelake.observability.metrics.serving.kpis import KpiTelemetry
from gamelake.observability.metrics.serving.live_ops import LiveOpsTelemetry
from gamelake.observability.metrics.serving.segments import SegmentTelemetry
from services.audit.metrics import AuditMetrics
from services.catalog.metrics import CatalogMetrics
from services.delivery.metrics import DeliveryMetrics
from services.gateway import metrics as gateway
from services.portal.metrics import PortalMetrics
from services.provision.certificates import EXPIRY_METRIC
from tests.support.scraping import declared_names

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
METRICS = metrics_file()
DECLARED = [metric for metrics in METRICS.sources.values() for metric in metrics]
NO_HEARTBEAT = Heartbeat(None)
A_GROUP = {"memory.current": "1000", "memory.max": "4000", "memory.stat": "inactive_file 300"}
A_SERVER: Any = SimpleNamespace(certificate_expires=datetime(2030, 1, 1, tzinfo=UTC))
EXPOSED: dict[str, Callable[[CollectorRegistry], object]] = {
    "ingest-events": lambda registry: Instruments(registry, "q"),
    "files": lambda registry: FilesTelemetry("q", registry),
    "catalog": CatalogMetrics,
    "delivery": DeliveryMetrics,
    "audit": AuditMetrics,
    "portal": PortalMetrics,
    "gold": lambda registry: (
        GoldTelemetry(registry, NO_HEARTBEAT),
        KpiTelemetry(registry),
        ExperimentTelemetry(registry).show(["new_shop"], []),
        SegmentTelemetry(registry),
    ),
    "live-ops": lambda registry: LiveOpsTelemetry("q", registry),
    "maintenance": lambda registry: MaintenanceTelemetry(registry, NO_HEARTBEAT),
}


def exposed(registry: CollectorRegistry) -> set[str]:
    """The names of our metrics that a scrape of a registry shows."""
    return set(re.findall(r"^# TYPE (gamelake_\w+) ", generate_latest(registry).decode(), re.MULTILINE))


@pytest.mark.parametrize("source", EXPOSED)
def test_a_program_exposes_its_declared_metrics_and_no_other(source: str) -> None:
    registry = CollectorRegistry()
    EXPOSED[source](registry)

    assert exposed(registry) == declared_names(source)


def test_the_gateway_exposes_its_declared_metrics_and_no_other() -> None:
    gateway.initialize(["archery"], memory_budget=1)

    assert exposed(REGISTRY) == declared_names("ingest")


def test_every_endpoint_exposes_the_declared_metrics_of_its_container_and_its_certificate(tmp_path: Path) -> None:
    for name, text in A_GROUP.items():
        (tmp_path / name).write_text(text)
    registry = CollectorRegistry()
    registry.register(ContainerMemoryCollector(tmp_path))
    registry.register(CertificateExpiryCollector(A_SERVER))

    assert exposed(registry) == declared_names("endpoint")


def test_no_other_program_has_a_declared_metric() -> None:
    assert METRICS.sources.keys() == {*EXPOSED, "endpoint", "ingest", "certificates"}
    assert declared_names("certificates") == {EXPIRY_METRIC}


def test_every_metric_is_declared_once() -> None:
    assert len(DECLARED) == len(declarations())


def test_every_label_is_explained_and_the_reverse() -> None:
    assert {label for metric in DECLARED for label in metric.labels} == METRICS.labels.keys()


@pytest.mark.parametrize("metric", DECLARED, ids=lambda metric: metric.name)
def test_a_name_follows_prometheus_rules(metric: MetricDeclaration) -> None:
    name, unit = metric.name, metric.unit

    assert re.fullmatch(r"gamelake(_[a-z]+)+", name)
    assert name.endswith("_total") == (metric.type == "counter")
    assert name.endswith("_timestamp_seconds") == (unit == "timestamp")
    assert ("_seconds" in name) == (unit in ("seconds", "timestamp"))
    assert name.endswith("_ratio") == (unit == "ratio")
    assert bool(metric.buckets) == (metric.type == "histogram")


def test_the_page_names_every_metric_and_no_other() -> None:
    assert set(re.findall(r"`(gamelake_[a-z_]+)`", PAGE)) == declarations().keys()


def test_the_page_says_which_figures_are_estimates() -> None:
    rows = dict(re.findall(r"^\| `(gamelake_[a-z_]+)` \|(.*)$", PAGE, re.MULTILINE))

    for metric in DECLARED:
        assert ("estimate" in rows.get(metric.name, "").lower()) == metric.estimate
