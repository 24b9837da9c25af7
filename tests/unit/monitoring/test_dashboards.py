"""Dashboards: the committed JSON matches the code, and each panel has a description."""

import json
import re
from typing import Any

import pytest
import yaml

from gamelake.observability.kpis import CURVE_DAYS
from gamelake.observability.metrics.declared import declarations
from monitoring.addresses import runbook_url
from monitoring.grafana.dashboards import PAGES, kpis
from monitoring.grafana.drawing import built_panel
from monitoring.grafana.files import GENERATED, generated
from monitoring.grafana.page import Page, Row
from monitoring.grafana.panels import FULL_WIDTH, BarGauge, Panel, Query, Thresholds
from tests.unit.monitoring.rules import MONITORING, REPOSITORY, alerts, read_yaml

PROVISIONING = GENERATED.parent / "provisioning"
UIDS = {
    "gamelake-kpis", "gamelake-gateway", "gamelake-lag", "gamelake-live-ops", "gamelake-pipeline", "gamelake-tables",
    "gamelake-services", "gamelake-maintenance",
}  # fmt: skip


def panels_of(page: Page) -> list[dict[str, Any]]:
    """The panels as Grafana reads them, without the rows' headings."""
    return [panel for panel in json.loads(page.to_json())["panels"] if panel["type"] != "row"]


EVERY_PANEL = [
    pytest.param(page, panel, id=f"{page.uid}-{panel['id']}-{panel['title']}")
    for page in PAGES
    for panel in panels_of(page)
]


# The last version of this format (Grafana 12.2); later ones read it.
NEWEST_SCHEMA = 42
ALERTS = {alert.name for alert in alerts()}
UNIT_OF = {name: metric.unit for name, metric in declarations().items()}
# Services without a scrape target, and what reports that they are gone.
NOT_SCRAPED = {
    "postgres": "gamelake_ingest_vault_up, and the registry's connections",
    "alert-receiver": "alertmanager_notifications_failed_total",
    "spark-history": "nothing depends on it",
    "grafana": "a person who looks",
    "data-docs": "a person who looks",
    "quality": "scraped where it runs",
}


def test_the_committed_json_is_what_the_code_makes() -> None:
    committed = {path.name: path.read_text(encoding="utf-8") for path in GENERATED.glob("*.json")}

    assert committed == generated(PAGES), "run: python -m monitoring.grafana"


def test_the_pages_keep_the_addresses_that_alerts_link_to() -> None:
    assert {page.uid for page in PAGES} == UIDS


def test_the_curves_of_cohorts_have_the_days_that_the_job_shows() -> None:
    assert kpis.CURVE_DAYS == CURVE_DAYS


@pytest.mark.parametrize(("page", "panel"), EVERY_PANEL)
def test_every_panel_says_what_it_shows(page: Page, panel: dict[str, Any]) -> None:
    assert panel["title"]
    assert panel["description"].endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"]
    assert panel["datasource"] == {"type": "prometheus", "uid": "prometheus"}
    assert panel["targets"]
    for target in panel["targets"]:
        assert target["datasource"] == panel["datasource"]
        assert target["expr"]
        assert target["legendFormat"]
    assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])


@pytest.mark.parametrize(("page", "panel"), EVERY_PANEL)
def test_a_panel_uses_only_the_variables_of_its_dashboard(page: Page, panel: dict[str, Any]) -> None:
    offered = {variable.name.lower() for variable in page.variables}
    used = {
        name for name in ("query", "game", "table", "title") for each in panel["targets"] if f'"${name}' in each["expr"]
    }

    assert used <= offered


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.uid)
def test_panels_lie_side_by_side_and_have_numbers_of_their_own(page: Page) -> None:
    panels = json.loads(page.to_json())["panels"]
    cells = [
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]

    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < FULL_WIDTH
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_grafana_finds_source_and_dashboards_where_they_are_mounted() -> None:
    (source,) = yaml.safe_load((PROVISIONING / "datasources" / "prometheus.yaml").read_text())["datasources"]
    (provider,) = yaml.safe_load((PROVISIONING / "dashboards" / "gamelake.yaml").read_text())["providers"]

    assert (source["uid"], source["url"]) == ("prometheus", "https://prometheus:9090")
    assert provider["options"]["path"] == "/var/lib/grafana/dashboards"


def test_a_value_that_should_be_large_is_red_when_it_is_small() -> None:
    shares = BarGauge(
        title="Free",
        description="Free.",
        unit="percentunit",
        queries=(Query("1", "a"),),
        thresholds=Thresholds(0.2, 0.1),
    )

    steps = json.loads(Page(uid="a", title="A", description="A.", variables=(), rows=(Row("R", (shares,)),)).to_json())[
        "panels"
    ][1]["fieldConfig"]["defaults"]["thresholds"]["steps"]

    assert [(step["value"], step["color"]) for step in steps] == [(None, "red"), (0.1, "#EAB839"), (0.2, "green")]


def test_a_panel_of_unknown_type_is_an_error() -> None:
    with pytest.raises(TypeError, match="no Grafana panel type"):
        built_panel(Panel(title="t", description="d.", unit="s", queries=()))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.uid)
def test_grafana_12_and_13_read_the_format(page: Page) -> None:
    assert json.loads(page.to_json())["schemaVersion"] == NEWEST_SCHEMA


@pytest.mark.parametrize(("page", "panel"), EVERY_PANEL)
def test_current_values_are_asked_for_now_and_curves_keep_their_series(page: Page, panel: dict[str, Any]) -> None:
    is_over_time = panel["type"] in {"timeseries", "state-timeline"}

    for target in panel["targets"]:
        assert bool(target.get("range")) is is_over_time, page.uid
        assert bool(target.get("instant")) is not is_over_time
        # topk selects again at each point in time: the legend would keep the last value of a series that is no longer
        # large.
        if is_over_time and re.search(r"(?:top|bottom)k", target["expr"]):
            assert "@ end()" in target["expr"]


@pytest.mark.parametrize(("page", "panel"), EVERY_PANEL)
def test_an_age_is_guarded_against_what_has_never_happened(page: Page, panel: dict[str, Any]) -> None:
    for target in panel["targets"]:
        for since in re.findall(r"time\(\) - (?!ALERTS_FOR_STATE|max_over_time\(timestamp)(.+)", target["expr"]):
            assert re.match(r"\(.+ > 0\)", since), page.uid


@pytest.mark.parametrize(("page", "panel"), EVERY_PANEL)
def test_rates_are_of_counters_by_their_names(page: Page, panel: dict[str, Any]) -> None:
    # Prometheus warns of any other name, and Grafana shows the warning.
    for target in panel["targets"]:
        for name in re.findall(r"\b(?:rate|increase)\((\w+)", target["expr"]):
            assert re.search(r"_(?:total|sum|count|bucket)$", name), page.uid


@pytest.mark.parametrize(("page", "panel"), EVERY_PANEL)
def test_ages_and_lags_are_durations(page: Page, panel: dict[str, Any]) -> None:
    if panel["fieldConfig"]["defaults"]["unit"] == "s":
        asked = " ".join(target["expr"] for target in panel["targets"])
        assert not re.search(r"time\(\)|timestamp|_seconds_behind|retention", asked), page.uid


@pytest.mark.parametrize(("page", "panel"), EVERY_PANEL)
def test_series_of_one_panel_have_one_unit(page: Page, panel: dict[str, Any]) -> None:
    if panel["type"] == "table":
        return
    found = {
        UNIT_OF[name] in {"bytes", "boolean"}
        for target in panel["targets"]
        for name in re.findall(r"\b(gamelake_\w+)", target["expr"])
        if name in UNIT_OF and "/" not in target["expr"]
    }

    assert len(found) <= 1, page.uid


@pytest.mark.parametrize(("page", "panel"), EVERY_PANEL)
def test_zeros_are_not_magnified_and_a_limit_is_visible(page: Page, panel: dict[str, Any]) -> None:
    if panel["type"] == "timeseries":
        defaults = panel["fieldConfig"]["defaults"]
        limits = [step["value"] for step in defaults["thresholds"]["steps"] if step["value"] is not None]

        assert defaults["custom"]["axisSoftMax"] >= max(limits, default=0.001), page.uid


@pytest.mark.parametrize(("page", "panel"), EVERY_PANEL)
def test_a_single_series_keeps_its_name(page: Page, panel: dict[str, Any]) -> None:
    if panel["type"] == "stat":
        assert panel["options"]["textMode"] == "value_and_name", page.uid
    if panel["type"] == "bargauge":
        assert panel["fieldConfig"]["defaults"]["displayName"], page.uid


@pytest.mark.parametrize(("page", "panel"), EVERY_PANEL)
def test_a_panel_says_what_an_empty_result_means(page: Page, panel: dict[str, Any]) -> None:
    empty = panel["fieldConfig"]["defaults"]["noValue"]

    if any(re.search(r"ALERTS|> 0$", target["expr"]) for target in panel["targets"]):
        assert empty != "no data", page.uid


@pytest.mark.parametrize(("page", "panel"), EVERY_PANEL)
def test_a_panel_that_names_an_alert_links_to_its_runbook(page: Page, panel: dict[str, Any]) -> None:
    named = set(re.findall(r"\w+", panel["description"])) & ALERTS
    links = {link["url"] for link in panel.get("links") or ()}

    assert {runbook_url(name) for name in named} == links, page.uid


@pytest.mark.parametrize(("page", "panel"), EVERY_PANEL)
def test_links_of_rows_lead_to_dashboards_with_the_variable(page: Page, panel: dict[str, Any]) -> None:
    variables = {each.uid: {variable.name.lower() for variable in each.variables} for each in PAGES}
    for override in panel["fieldConfig"]["overrides"]:
        for setting in override["properties"]:
            for link in setting["value"] if setting["id"] == "links" else ():
                if link["url"].startswith("/d/"):
                    uid, variable = re.fullmatch(r"/d/([\w-]+)\?var-(\w+)=.+", link["url"]).groups()  # type: ignore[union-attr]
                    assert variable in variables[uid], page.uid


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.uid)
def test_alerts_starts_and_changes_are_marked_on_every_dashboard(page: Page) -> None:
    marks = [mark for mark in json.loads(page.to_json())["annotations"]["list"] if mark.get("expr")]

    assert {mark["name"] for mark in marks} == {"Critical alerts", "Starts of services", "Changes of rules"}


def test_every_service_has_a_scrape_target_or_another_way_to_miss_it() -> None:
    files = ("compose.yaml", "compose.serving.yaml", "compose.observability.yaml", "compose.grafana.yaml")
    services = {
        name
        for file in files
        for name, service in read_yaml(REPOSITORY / "compose" / file)["services"].items()
        if service.get("restart") == "unless-stopped"
    }
    jobs = read_yaml(MONITORING / "prometheus/prometheus.yml")["scrape_configs"]
    scraped = {
        target.partition(":")[0]
        for job in jobs
        # Those of the probe are ports, not metrics.
        if job.get("metrics_path") != "/probe"
        for target in (
            *(target for group in job.get("static_configs", ()) for target in group["targets"]),
            *(name for group in job.get("dns_sd_configs", ()) for name in group["names"]),
        )
    }

    assert services - scraped - {"prometheus"} == NOT_SCRAPED.keys() - {"data-docs", "quality"}
