"""Each alert has a severity, a runbook and a dashboard, and a test in which it fires."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest

from monitoring.addresses import GRAFANA, runbook_url
from monitoring.grafana.dashboards import PAGES
from services.portal.docs import DOCS, RUNBOOKS
from tests.unit.monitoring.rules import MONITORING, REPOSITORY, Alert, alerts, read_yaml, seen_firing
from tools import docs_site

EVERY_ALERT = [pytest.param(alert, id=alert.name) for alert in alerts()]
PAGE = {page.uid: page for page in PAGES}
DOCUMENTS = docs_site.documents(REPOSITORY)


def test_no_two_alerts_have_one_name() -> None:
    names = [alert.name for alert in alerts()]

    assert len(names) == len(set(names))


@pytest.mark.parametrize("alert", EVERY_ALERT)
def test_every_alert_fires_in_some_test(alert: Alert) -> None:
    assert alert.name in seen_firing()


@pytest.mark.parametrize("alert", EVERY_ALERT)
def test_every_alert_has_a_severity_a_summary_and_a_description(alert: Alert) -> None:
    # An alert that always fires reports nothing.
    assert alert.labels["severity"] in (("none",) if alert.name == "Watchdog" else ("critical", "warning"))
    assert alert.annotations["summary"]
    assert alert.annotations["description"].endswith(".")


@pytest.mark.parametrize("alert", EVERY_ALERT)
def test_every_alert_leads_to_the_runbook_of_its_own_name(alert: Alert) -> None:
    link = urlsplit(alert.annotations["runbook_url"])

    assert link.geturl() == runbook_url(alert.name)
    # MkDocs gives a document a folder at the document's path.
    assert link.path == f"{DOCS}{RUNBOOKS}{alert.name}/"
    assert f"{RUNBOOKS}{alert.name}.md" in DOCUMENTS


@pytest.mark.parametrize("alert", EVERY_ALERT)
def test_every_alert_leads_to_a_dashboard_that_exists_with_its_own_choice_made(alert: Alert) -> None:
    link = alert.annotations["dashboard_url"]
    path = urlsplit(link).path
    choices = {name.removeprefix("var-") for name in parse_qs(urlsplit(link).query)}

    assert link.startswith(f"{GRAFANA}/d/")
    assert choices <= {variable.name.lower() for variable in PAGE[path.removeprefix("/d/")].variables}


def test_what_inhibits_and_what_is_inhibited_are_alerts() -> None:
    routed = read_yaml(MONITORING / "alertmanager/alertmanager.yml")
    matchers = [
        matcher
        for rule in routed["inhibit_rules"]
        for matcher in (*rule["source_matchers"], *rule["target_matchers"])
        if matcher.startswith("alertname")
    ]
    patterns = {pattern for matcher in matchers for pattern in re.findall(r'"(.+)"', matcher)[0].split("|")}

    for pattern in patterns:
        assert any(re.fullmatch(pattern, alert.name) for alert in alerts()), pattern
