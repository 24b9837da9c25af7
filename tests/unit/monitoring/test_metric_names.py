"""One name, one meaning: in the code, in `declared.yaml`, in rules, on dashboards and on the page that explains it."""

import json
import re

import pytest

from gamelake.observability.metrics.declared import declarations
from monitoring.grafana.files import GENERATED
from tests.unit.monitoring.rules import REPOSITORY, alerts, recorded, rules

DECLARED = declarations()
PAGE = (REPOSITORY / "docs/monitoring.md").read_text(encoding="utf-8")
DASHBOARDS = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(GENERATED.glob("*.json"))]
PANELS = [panel for dashboard in DASHBOARDS for panel in dashboard["panels"]]
ASKED = [target["expr"] for panel in PANELS for target in panel.get("targets", ())]
OFFERED = [choice["query"] for dashboard in DASHBOARDS for choice in dashboard["templating"].get("list", ())]
RULES = [rule["expr"] for rule in rules()]
# Our own settings carry the same prefix in capitals, and rules record under a colon: neither is a metric.
_OURS = re.compile(r"(?<![:\w])gamelake_[a-z_]+")
_RECORDED = re.compile(r"gamelake:[a-z0-9_:]+")


def names_in(*texts: str) -> set[str]:
    """Our metrics in some expressions, by the names that they are declared under."""
    found = {name for text in texts for name in _OURS.findall(text)}
    return {name if name in DECLARED else re.sub(r"_(bucket|sum|count)$", "", name) for name in found}


def test_every_declared_metric_is_on_some_dashboard_and_no_other() -> None:
    assert names_in(*ASKED) == DECLARED.keys()


def test_rules_and_choices_name_declared_metrics_only() -> None:
    assert names_in(*RULES, *OFFERED) <= DECLARED.keys()


def test_every_recording_rule_is_used_and_the_reverse() -> None:
    assert {name for text in (*RULES, *ASKED) for name in _RECORDED.findall(text)} == recorded()


@pytest.mark.parametrize("name", DECLARED)
def test_labels_in_queries_are_declared(name: str) -> None:
    for expression in (*ASKED, *RULES):
        for selector in re.findall(rf"\b{name}(?:_bucket|_sum|_count)?{{([^}}]*)}}", expression):
            assert set(re.findall(r"(\w+) *[=!]~?=?", selector)) <= {*DECLARED[name].labels, "le"}


def test_runbooks_that_a_panel_names_exist() -> None:
    text = " ".join(panel.get("description", "") for panel in PANELS)
    named = set(re.findall(r"runbook (\w+)", text))

    assert named
    assert named <= {alert.name for alert in alerts()}


def test_the_page_has_a_line_for_every_alert_and_every_dashboard_and_no_other() -> None:
    rows = re.findall(r"^\| \[`?(\w[\w ]*)`?\]\((.+?)\) \|", PAGE, re.MULTILINE)
    runbooks = {name for name, target in rows if target == f"../monitoring/runbooks/{name}.md"}
    dashboards = {name for name, target in rows if target.startswith("../monitoring/grafana/dashboards/")}

    assert runbooks == {alert.name for alert in alerts()}
    assert dashboards == {dashboard["title"] for dashboard in DASHBOARDS}


def test_the_page_names_each_alerts_severity() -> None:
    for alert in alerts():
        row = re.search(rf"^\| \[`{alert.name}`\]\(.+?\) \| (\w+) \|", PAGE, re.MULTILINE)
        assert row is not None, alert.name
        assert row[1] == alert.labels["severity"], alert.name
