"""Builds the instruments of all programs from `declared.yaml`, which declares each metric once.

A program whose code and declaration differ fails at its start, with an error that names the metric.
"""

from functools import cache
from pathlib import Path
from typing import Literal

import msgspec
import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily

from gamelake.contract.located_yaml import refused_by_file
from gamelake.model.errors import ContractError

METRICS_FILE = Path(__file__).with_name("declared.yaml")

# A `_created` series for each counter would double their number; none is declared, and no query uses one.
prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]

_Kind = Literal["counter", "gauge", "histogram"]
_Unit = Literal[
    "boolean",
    "bytes",
    "dollars",
    "events",
    "experiments",
    "failures",
    "files",
    "flags",
    "games",
    "offsets",
    "players",
    "ratio",
    "records",
    "requests",
    "rows",
    "runs",
    "seconds",
    "sessions",
    "sources",
    "tables",
    "timestamp",
    "version",
]


class MetricDeclaration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A metric as the file declares it.

    Attributes:
        type: Prometheus' type.
        unit: what the value counts, or its scale.
        labels: the names of its labels, in the order in which code passes their values.
        buckets: a histogram's upper bounds, without the infinite one.
        processes: how prometheus_client merges the values of the gateway's processes.
        estimate: True if the value is inferred, neither counted nor read.
        help: the line that `/metrics` shows.
        details: facts that the line omits.
    """

    name: str
    type: _Kind
    unit: _Unit
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    processes: Literal["all", "livemin", "livesum", "mostrecent"] = "all"
    estimate: bool = False
    details: str = ""


class MetricsFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of the file: what each label means, and the metrics by the program that exposes them."""

    labels: dict[str, str]
    sources: dict[str, tuple[MetricDeclaration, ...]]


@cache
def metrics_file() -> MetricsFile:
    """Read the file, once per process.

    Raises:
        ContractError: the file is missing or malformed.
    """
    with refused_by_file(METRICS_FILE):
        return msgspec.yaml.decode(METRICS_FILE.read_bytes(), type=MetricsFile)


@cache
def declarations() -> dict[str, MetricDeclaration]:
    """Return all declarations by their names.

    Raises:
        ContractError: the file is missing or malformed.
    """
    return {metric.name: metric for metrics in metrics_file().sources.values() for metric in metrics}


def counter(registry: CollectorRegistry, name: str, *labels: str) -> Counter:
    """Create a declared counter in a registry.

    Raises:
        ContractError: the metric is not declared, is not a counter, or has other labels.
    """
    declared = _declared("counter", name, labels)
    return Counter(name, declared.help, labels, registry=registry)


def gauge(registry: CollectorRegistry, name: str, *labels: str) -> Gauge:
    """Create a declared gauge in a registry.

    Raises:
        ContractError: the metric is not declared, is not a gauge, or has other labels.
    """
    declared = _declared("gauge", name, labels)
    return Gauge(name, declared.help, labels, registry=registry, multiprocess_mode=declared.processes)


def histogram(registry: CollectorRegistry, name: str, *labels: str) -> Histogram:
    """Create a declared histogram in a registry.

    Raises:
        ContractError: the metric is not declared, is not a histogram, or has other labels.
    """
    declared = _declared("histogram", name, labels)
    return Histogram(name, declared.help, labels, buckets=declared.buckets, registry=registry)


def gauge_family(name: str, *labels: str) -> GaugeMetricFamily:
    """Create an empty family of a declared gauge, for a collector that reads its values at each scrape.

    Raises:
        ContractError: the metric is not declared, is not a gauge, or has other labels.
    """
    return GaugeMetricFamily(name, _declared("gauge", name, labels).help, labels=labels)


def _declared(kind: _Kind, name: str, labels: tuple[str, ...]) -> MetricDeclaration:
    declared = declarations().get(name)
    if declared is None:
        raise ContractError(f"the metric {name} is not declared; add it to {METRICS_FILE}")
    if (declared.type, declared.labels) != (kind, labels):
        wanted, found = _described(kind, labels), _described(declared.type, declared.labels)
        raise ContractError(
            f"the code wants {name} to be a {wanted}, but {METRICS_FILE} declares a {found}; make them equal"
        )
    return declared


def _described(kind: str, labels: tuple[str, ...]) -> str:
    return f"{kind} with the labels {', '.join(labels)}" if labels else f"{kind} without labels"
