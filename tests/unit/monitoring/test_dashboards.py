"""Dashboards: the committed JSON matches the code, and each panel has a description."""

import json
from typing import Any

import pytest
import yaml

from monitoring.grafana.dashboards import PAGES
from monitoring.grafana.drawing import built_panel
from monitoring.grafana.files import GENERATED, generated
from monitoring.grafana.page import Page, Row
from monitoring.grafana.panels import FULL_WIDTH, BarGauge, Panel, Query, Thresholds

PROVISIONING = GENERATED.parent / "provisioning"
UIDS = {
    "gamelake-kpis",
    "gamelake-gateway",
    "gamelake-lag",
    "gamelake-live-ops",
    "gamelake-pipeline",
    "gamelake-tables",
    "gamelake-services",
    "gamelake-maintenance",
}


def panels_of(page: Page) -> list[dict[str, Any]]:
    """The panels as Grafana reads them, without the rows' headings."""
    return [panel for panel in json.loads(page.to_json())["panels"] if panel["type"] != "row"]


EVERY_PANEL = [
    pytest.param(page, panel, id=f"{page.uid}-{panel['id']}-{panel['title']}")
    for page in PAGES
    for panel in panels_of(page)
]


def test_the_committed_json_is_what_the_code_makes() -> None:
    committed = {path.name: path.read_text(encoding="utf-8") for path in GENERATED.glob("*.json")}

    assert committed == generated(PAGES), "run: python -m monitoring.grafana"


def test_the_pages_keep_the_addresses_that_alerts_link_to() -> None:
    assert {page.uid for page in PAGES} == UIDS


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
