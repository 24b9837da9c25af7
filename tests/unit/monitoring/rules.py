"""The rules and their promtool tests, parsed."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).resolve().parents[3]
MONITORING = REPOSITORY / "monitoring"
RULE_FILES = sorted((MONITORING / "prometheus/rules").glob("*.yml"))
RULE_TESTS = sorted((MONITORING / "prometheus/tests").glob("*.yml"))

_FIRING = re.compile(r'alertname="(\w+)"')


@dataclass(frozen=True, slots=True)
class Alert:
    """One alerting rule.

    Attributes:
        delay: how long the condition holds before the alert fires, as Prometheus writes it; empty: fires at once.
    """

    name: str
    expression: str
    labels: dict[str, str]
    annotations: dict[str, str]
    delay: str


def read_yaml(path: Path) -> Any:  # noqa: ANN401 # each file has a shape of its own
    """The parsed YAML of a file."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def rules() -> list[dict[str, Any]]:
    """Every rule of every file."""
    return [rule for file in RULE_FILES for group in read_yaml(file)["groups"] for rule in group["rules"]]


def alerts() -> list[Alert]:
    return [
        Alert(rule["alert"], rule["expr"], rule["labels"], rule["annotations"], rule.get("for", ""))
        for rule in rules()
        if "alert" in rule
    ]


def recorded() -> set[str]:
    """The names of all recording rules."""
    return {rule["record"] for rule in rules() if "record" in rule}


def seen_firing() -> set[str]:
    """The alerts that a promtool test expects to fire."""
    return {name for file in RULE_TESTS for test in read_yaml(file)["tests"] for name in _firing_in(test)}


def _firing_in(test: dict[str, Any]) -> Iterator[str]:
    for each in test.get("alert_rule_test", ()):
        if each["exp_alerts"]:
            yield each["alertname"]
    for each in test.get("promql_expr_test", ()):
        for sample in each["exp_samples"]:
            yield from _FIRING.findall(sample["labels"])
