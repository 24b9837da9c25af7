"""Scrapes of programs' metrics, and the metrics that `declared.yaml` declares."""

import math
import urllib.request
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from gamelake.observability.metrics.declared import metrics_file

PREFIX = "gamelake_"


@dataclass(frozen=True, slots=True)
class Scraped:
    """One scrape."""

    families: tuple[Metric, ...]

    def value(self, name: str, **labels: str) -> float:
        """The one sample of a name that has these labels, and maybe others; NaN if there is none."""
        found = self.values(name, **labels)
        assert len(found) < 2, f"{name} has {len(found)} samples with {labels}"
        return found[0] if found else math.nan

    def values(self, name: str, **labels: str) -> list[float]:
        """All samples of a name that have these labels, and maybe others."""
        return [
            sample.value
            for family in self.families
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        ]

    def labels(self, name: str, label: str) -> set[str]:
        samples = (sample for family in self.families for sample in family.samples)
        return {sample.labels[label] for sample in samples if sample.name == name}

    def our_names(self) -> set[str]:
        """The names of the platform's own metrics, as in `declared.yaml`."""
        return {
            f"{family.name}_total" if family.type == "counter" else family.name
            for family in self.families
            if family.name.startswith(PREFIX) and family.samples
        }


def scraped(registry: CollectorRegistry) -> Scraped:
    """Return what Prometheus would read of a registry."""
    return Scraped(tuple(text_string_to_metric_families(generate_latest(registry).decode())))


def scrape(url: str) -> Scraped:
    with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 # an address of this machine
        return Scraped(tuple(text_string_to_metric_families(answer.read().decode())))


def declared_names(source: str) -> set[str]:
    """The metrics that `declared.yaml` declares for a source."""
    return {metric.name for metric in metrics_file().sources[source]}
