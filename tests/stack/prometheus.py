"""The stack's Prometheus, as a person at its page asks it."""

import json
import math
import os
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Any

_PATIENCE_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Target:
    """An address that Prometheus asks, and how that went the last time."""

    job: str
    health: str
    trouble: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that is loaded, and how its last evaluation went."""

    name: str
    health: str
    trouble: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What an address said."""

    status: int
    text: str


@dataclass(frozen=True, slots=True)
class Prometheus:
    """One server."""

    url: str

    @classmethod
    def of_the_stack(cls) -> "Prometheus":
        """The one that `make up` started."""
        return cls(f"http://127.0.0.1:{os.environ.get('PROMETHEUS_PORT', '9090')}")

    def values(self, expression: str) -> list[float]:
        """What an expression is now, one number per series; those that are not defined (NaN) are left out."""
        found = self._api("query", query=expression)["result"]
        numbers = [float(series["value"][1]) for series in found]
        return [number for number in numbers if not math.isnan(number)]

    def targets(self) -> list[Target]:
        """What it asks for figures."""
        found = self._api("targets", state="active")["activeTargets"]
        return [Target(each["labels"]["job"], each["health"], each["lastError"]) for each in found]

    def rules(self) -> list[Rule]:
        """What it evaluates: alerts, and figures that it records."""
        rules = [rule for group in self._api("rules")["groups"] for rule in group["rules"]]
        return [Rule(each["name"], each["health"], each.get("lastError", "")) for each in rules]

    def page(self, path: str) -> Answer:
        """One of its pages."""
        request = urllib.request.Request(f"{self.url}{path}")  # noqa: S310 # an address of this machine
        try:
            with urllib.request.urlopen(request, timeout=_PATIENCE_SECONDS) as answer:  # noqa: S310 # as above
                return Answer(answer.status, answer.read().decode())
        except urllib.error.HTTPError as refused:
            with refused:
                return Answer(refused.code, refused.read().decode())

    def _api(self, name: str, **parameters: str) -> Any:  # noqa: ANN401 # JSON, of another shape for each name
        answer = self.page(f"/api/v1/{name}?{urllib.parse.urlencode(parameters)}")
        assert answer.status == 200, f"{parameters}: {answer.text}"
        return json.loads(answer.text)["data"]
