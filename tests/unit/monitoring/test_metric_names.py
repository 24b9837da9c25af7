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
_RUNBOOK = re.compile(r"\[`(\w+)`\]\(\.\./monitoring/runbooks/\1\.md\)")
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


def severities_of_the_page() -> dict[str, str]:
    """Each alert of the page's table by its column, and the one in the text that has no severity."""
    section = PAGE.split("\n## Alerts\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\| \w[^|]* \|([^|]*)\|([^|]*)\|$", section, re.MULTILINE)
    columns = {
        "critical": "".join(critical for critical, _ in cells),
        "warning": "".join(warning for _, warning in cells),
    }
    columns["none"] = re.sub(r"^\|.*$", "", section, flags=re.MULTILINE)
    return {name: severity for severity, text in columns.items() for name in _RUNBOOK.findall(text)}


def test_the_page_has_every_alert_with_its_severity_and_no_other() -> None:
    assert severities_of_the_page() == {alert.name: alert.labels["severity"] for alert in alerts()}


def test_the_page_has_a_line_for_every_dashboard_and_no_other() -> None:
    rows = re.findall(r"^\| \[(\w[\w ]*)\]\(\.\./monitoring/grafana/dashboards/.+?\) \|", PAGE, re.MULTILINE)

    assert set(rows) == {dashboard["title"] for dashboard in DASHBOARDS}
