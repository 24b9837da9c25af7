"""No expression of a rule has one of the patterns that keep an alert from firing, or let it fire wrongly.

- `increase(x[1h])` alone is 0 for a counter raised before its process' first scrape: use the counter itself where the
  process is younger.
- `rate(...)` without `for` misses the same, for one scrape.
- `up == 0` alone: a target that is gone has no `up`. Use `up or 0 * max_over_time(up[1d])`.
- An age that starts at 0 fires at each start: use the process' start, or a time that outlives the process.
- An aggregation without `namespace` lets releases mask each other: use `by (namespace, ...)`, and `equal: [namespace]`
  for inhibitions.
"""

import re
import time
from datetime import timedelta

import pytest
from prometheus_client import CollectorRegistry

from gamelake.observability.metrics.endpoint import Heartbeat
from gamelake.observability.metrics.serving.gold import FAILED, GoldTelemetry, RefreshFigures
from services.audit.metrics import AuditMetrics
from services.catalog.metrics import CatalogMetrics
from services.delivery.metrics import DeliveryMetrics
from tests.unit.monitoring.rules import MONITORING, Alert, alerts, read_yaml, rules

EVERY_RULE = [pytest.param(" ".join(rule["expr"].split()), id=rule.get("alert") or rule["record"]) for rule in rules()]
EVERY_ALERT = [pytest.param(alert, id=alert.name) for alert in alerts()]
JOBS = [job["job_name"] for job in read_yaml(MONITORING / "prometheus/prometheus.yml")["scrape_configs"]]
SECONDS = {"m": 60, "h": 3600, "d": 86400}

_SERIES = r"[a-zA-Z_:][\w:]*(?:\{[^}]*\})?"
_INCREASE = re.compile(rf"increase\(({_SERIES})\[(\d+)([mhd])\]\)")
_UP = re.compile(r"(?<![\w:])up(\{[^}]*\})?(?![\w{:])")
_AGGREGATION = re.compile(
    r"(?<![:\w])(?:sum|max|min|avg|count|topk|bottomk|quantile|stddev|group)\b(?! by \(namespace\b)"
)
_MATCHING = re.compile(r"\b(?:on|by) \((?!namespace\b)|\b(?:ignoring|without)\b")
_TEXT = re.compile(r'"[^"]*"')


@pytest.mark.parametrize("expression", EVERY_RULE)
def test_an_increase_counts_what_a_process_counted_before_its_first_scrape(expression: str) -> None:
    # The increase of a series that begins above zero is 0. A counter of the kernel is older than its exporter.
    for series, number, unit in _INCREASE.findall(expression):
        if not series.startswith("node_"):
            young = f"time() - process_start_time_seconds < {int(number) * SECONDS[unit]}"
            increase = f"increase({series}[{number}{unit}])"
            assert f"(({series} and on (namespace, job, instance) {young}) > {increase} or {increase})" in expression


@pytest.mark.parametrize("alert", EVERY_ALERT)
def test_an_alert_on_a_rate_waits_so_that_a_second_scrape_shows_the_rate(alert: Alert) -> None:
    if re.search(r"\brate\(|:rate\d", alert.expression):
        assert alert.delay, "a rate of a new series is 0 at its first scrape: use an increase for a single event"


@pytest.mark.parametrize("expression", EVERY_RULE)
def test_a_target_that_is_gone_counts_like_one_that_is_down(expression: str) -> None:
    # A pod that is gone has no `up`, and nothing compares as 0.
    if any(f"up{selector} ==" in expression or f"up{selector})" in expression for selector in _UP.findall(expression)):
        assert re.search(r"0 \* max_over_time\(up\{", expression)


@pytest.mark.parametrize("job", JOBS)
def test_every_target_has_an_alert_that_says_that_it_is_down(job: str) -> None:
    selectors = [
        re.findall(r'job(!?[=~]+)"(.+?)"', selector)[0]
        for alert in alerts()
        for selector in _UP.findall(alert.expression)
        if "job" in selector
    ]
    matching = [bool(re.fullmatch(pattern, job)) == (not operator.startswith("!")) for operator, pattern in selectors]

    assert any(matching)


@pytest.mark.parametrize("expression", EVERY_RULE)
def test_releases_in_one_prometheus_are_kept_apart(expression: str) -> None:
    expression = _TEXT.sub("", expression)

    assert _AGGREGATION.findall(expression) == []
    assert _MATCHING.findall(expression) == []
    # A vector without labels takes part in no release's sum.
    assert expression == "vector(1)" or "vector(" not in expression


def test_alerts_of_one_release_do_not_inhibit_those_of_another() -> None:
    routing = read_yaml(MONITORING / "alertmanager/alertmanager.yml")

    assert "namespace" in routing["route"]["group_by"]
    assert all("namespace" in rule["equal"] for rule in routing["inhibit_rules"])


@pytest.fixture
def just_started() -> CollectorRegistry:
    """The metrics of services that have just started, one of whose tables could not be refreshed."""
    registry = CollectorRegistry()
    AuditMetrics(registry).initialize("queries")
    CatalogMetrics(registry)
    DeliveryMetrics(registry)
    figures = RefreshFigures(table="gold/archery_daily_agg", outcome=FAILED, rows=0, every=timedelta(seconds=30))
    GoldTelemetry(registry, Heartbeat(None)).table_refreshed(figures)
    return registry


@pytest.mark.parametrize("alert", EVERY_ALERT)
def test_a_service_that_has_just_started_is_not_late(alert: Alert, just_started: CollectorRegistry) -> None:
    # Either the first success comes well within the alert's delay, or the alert also asks whether anything waits.
    if alert.delay == "15m" or " and " in alert.expression:
        return
    now = time.time()
    compared = re.findall(r"time\(\) - (?:max by \([\w, ]+\) )?\(?(gamelake_\w+)", alert.expression)
    for metric in just_started.collect():
        if metric.name in compared:
            assert [sample.value for sample in metric.samples] == [pytest.approx(now, abs=60)], metric.name
