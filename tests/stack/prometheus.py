"""The stack's Prometheus, as a person at its page asks it."""

import json
import math
import urllib.parse
from dataclasses import dataclass
from typing import Any

from tools.stack import PageResponse, page


@dataclass(frozen=True, slots=True)
class Target:
    """An address that Prometheus asks, and how that went the last time."""

    job: str
    health: str
    trouble: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that is loaded, how its last evaluation went, and how often it is evaluated (seconds)."""

    name: str
    health: str
    trouble: str
    expression: str
    interval: float


class Prometheus:
    """The one that `make up` started."""

    def values(self, expression: str) -> list[float]:
        """What an expression is now, one number per series; those that are not defined (NaN) are left out."""
        found = self._api("query", query=expression)["result"]
        numbers = [float(series["value"][1]) for series in found]
        return [number for number in numbers if not math.isnan(number)]

    def targets(self) -> list[Target]:
        found = self._api("targets", state="active")["activeTargets"]
        return [Target(each["labels"]["job"], each["health"], each["lastError"]) for each in found]

    def rules(self) -> list[Rule]:
        """What it evaluates: alerts, and figures that it records."""
        return [
            Rule(each["name"], each["health"], each.get("lastError", ""), each["query"], group["interval"])
            for group in self._api("rules")["groups"]
            for each in group["rules"]
        ]

    def page(self, path: str) -> PageResponse:
        return page("PROMETHEUS_PORT", path)

    def _api(self, name: str, **parameters: str) -> Any:  # noqa: ANN401 # JSON, of another shape for each name
        answer = self.page(f"/api/v1/{name}?{urllib.parse.urlencode(parameters)}")
        assert answer.status == 200, f"{parameters}: {answer.text}"
        return json.loads(answer.text)["data"]
