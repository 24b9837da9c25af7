"""Every panel's queries in a real Prometheus that has the series of a bad hour: no stale, infinite or clipped value."""

import json
import math
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from html import unescape
from typing import Any, NoReturn

import httpx2
import pytest
import urllib3

from gamelake.observability.metrics.declared import metrics_file
from monitoring.grafana.dashboards import PAGES
from monitoring.grafana.files import GENERATED
from monitoring.grafana.page import Page
from monitoring.grafana.panels import MOST_SERIES, BarGauge, Panel, Stat, StateTimeline, Table, TimeSeries
from services.portal.app import PortalApp
from services.portal.dashboard_page import DashboardPages
from services.portal.figures import figure_source
from services.portal.metrics import metrics_of_process
from services.portal.prometheus import Prometheus as PortalsPrometheus
from services.portal.questions import Questions
from services.portal.settings import PortalSettings
from tests.embedded.panel_series import GONE_GAME, HANGING_QUERY, STEP, BadHour
from tools.embedded.ports import free_port
from tools.embedded.process import ChildProcess, Program

RANGE_SECONDS = 40 * 60
DECADE = 10 * 365 * 86_400

EVERY_PANEL = [
    pytest.param(panel, id=f"{page.uid}-{panel.title}") for page in PAGES for row in page.rows for panel in row.panels
]
TABLES = [each for each in EVERY_PANEL if isinstance(each.values[0], Table)]
_LABEL = re.compile(r"{{(\w+)}}")


@dataclass(frozen=True, slots=True)
class Series:
    """One series of a query's result."""

    labels: Mapping[str, str]
    samples: list[tuple[float, float]]

    @property
    def last(self) -> float:
        return self.samples[-1][1]


def _named(legend: str, series: Series) -> str:
    return _LABEL.sub(lambda label: series.labels.get(label[1], ""), legend).strip()


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A server with the series, which no longer change; `end` is the time of the newest sample."""

    url: str
    end: int
    _results: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=dict)

    def shown(self, panel: Panel) -> list[tuple[str, Series]]:
        """The legend and the samples of each series that the panel shows."""
        is_range = isinstance(panel, TimeSeries | StateTimeline)
        return [
            (_named(query.legend, series), series)
            for query in panel.queries
            for series in (self.over_time(query.expr) if is_range else self.now(query.expr))
        ]

    def now(self, expression: str) -> list[Series]:
        """The result at the end."""
        found = self._asked("query", expression, time=self.end)
        return [Series(each["metric"], [(float(each["value"][0]), float(each["value"][1]))]) for each in found]

    def over_time(self, expression: str) -> list[Series]:
        """The result over the range that a dashboard shows."""
        found = self._asked("query_range", expression, start=self.end - RANGE_SECONDS, end=self.end, step=STEP)
        return [Series(each["metric"], [(float(at), float(text)) for at, text in each["values"]]) for each in found]

    def _asked(self, way: str, expression: str, **times: int) -> list[dict[str, Any]]:
        text = expression.replace("$__rate_interval", "1m").replace("$__range", f"{RANGE_SECONDS}s")
        text = re.sub(r"\$(query|game|table|title)", ".+", text)
        if (way, text) in self._results:
            return self._results[way, text]
        found = httpx2.post(f"{self.url}/api/v1/{way}", data={"query": text, **times}, timeout=60).json()
        assert found["status"] == "success", found
        return self._results.setdefault((way, text), found["data"]["result"])


@pytest.fixture(scope="module")
def prometheus(
    tmp_path_factory: pytest.TempPathFactory, missing_service: Callable[[str], NoReturn]
) -> Iterator[Prometheus]:
    """A Prometheus that has the series, and scrapes nothing."""
    if not (shutil.which("prometheus") and shutil.which("promtool")):
        missing_service("Prometheus is not installed")
    folder = tmp_path_factory.mktemp("prometheus")
    end = int(time.time()) // STEP * STEP
    (folder / "series.txt").write_text(BadHour(end).exposition(metrics_file().sources), encoding="utf-8")
    made = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "series.txt", "data"]
    subprocess.run(made, cwd=folder, check=True, capture_output=True)
    (folder / "prometheus.yml").write_text("{}", encoding="utf-8")
    address = f"127.0.0.1:{free_port()}"
    options = ("--config.file=prometheus.yml", "--storage.tsdb.path=data", f"--web.listen-address={address}")
    command = ("env", "-C", str(folder), "prometheus", *options)
    server = ChildProcess(Program(name="Prometheus", command=command, log_file=folder / "log"))
    try:
        server.wait_until(lambda: _is_ready(f"http://{address}/-/ready"), timedelta(seconds=60))
        yield Prometheus(f"http://{address}", end)
    finally:
        server.stop()


def _is_ready(url: str) -> bool:
    try:
        return httpx2.get(url, timeout=1).status_code == httpx2.codes.OK
    except httpx2.TransportError:
        return False


@pytest.mark.parametrize("panel", EVERY_PANEL)
def test_a_panel_has_a_result_or_says_why_it_is_empty(prometheus: Prometheus, panel: Panel) -> None:
    assert prometheus.shown(panel) or panel.empty != "no data"


@pytest.mark.parametrize("panel", EVERY_PANEL)
def test_no_value_is_infinite_undefined_or_an_age_since_1970(prometheus: Prometheus, panel: Panel) -> None:
    is_time = panel.unit in {"s", "dtdhms"}

    for legend, series in prometheus.shown(panel):
        for _, value in series.samples:
            assert math.isfinite(value), legend
            assert not is_time or abs(value) < DECADE, (legend, value)


@pytest.mark.parametrize("panel", EVERY_PANEL)
def test_names_are_there_and_tell_series_apart(prometheus: Prometheus, panel: Panel) -> None:
    if isinstance(panel, Table):
        pytest.skip("a table names its rows by a label")
    names = [name for name, _ in prometheus.shown(panel)]

    assert all(names)
    assert len(names) == len(set(names))


@pytest.mark.parametrize("panel", EVERY_PANEL)
def test_what_has_gone_is_not_shown_with_its_last_value(prometheus: Prometheus, panel: Panel) -> None:
    if not isinstance(panel, Stat):
        shown = {name: series for name, series in prometheus.shown(panel) if GONE_GAME in str(series.labels)}

        assert {name for name, series in shown.items() if series.samples[-1][0] < prometheus.end} == set()


@pytest.mark.parametrize("panel", EVERY_PANEL)
def test_the_legend_and_the_bars_of_a_panel_fit_in(prometheus: Prometheus, panel: Panel) -> None:
    shown = prometheus.shown(panel)
    pixels = 38 * panel.height - 46
    if isinstance(panel, TimeSeries) and _LABEL.search(panel.queries[0].legend):
        assert len(shown) * 24 + 24 <= pixels
    elif isinstance(panel, TimeSeries):
        assert len(shown) <= 4
    elif isinstance(panel, BarGauge | StateTimeline):
        assert len(shown) * 22 <= pixels
    elif isinstance(panel, Stat):
        assert len(shown) <= 1


@pytest.mark.parametrize("panel", TABLES)
def test_a_table_has_one_value_in_each_cell(prometheus: Prometheus, panel: Table) -> None:
    assert panel.sort in {panel.label, *panel.more_labels, *(column.name for column in panel.columns)}
    of_first = {series.labels[panel.label] for series in prometheus.now(panel.columns[0].expr)}
    for column in panel.columns:
        found = prometheus.now(column.expr)
        assert {series.labels[panel.label] for series in found} <= of_first, column.name
        rows = [tuple(series.labels.get(label, "") for label in (panel.label, *panel.more_labels)) for series in found]

        assert len(rows) == len(set(rows)), column.name
        assert all(series.labels.keys() <= {panel.label, *panel.more_labels} for series in found), column.name


def cells(prometheus: Prometheus, page_uid: str, title: str) -> Mapping[str, Mapping[str, str]]:
    """The rows of a table by their label, with the text of each column."""
    (panel,) = (
        panel
        for page in PAGES
        for row in page.rows
        for panel in row.panels
        if page.uid == page_uid and panel.title == title and isinstance(panel, Table)
    )
    rows: dict[str, dict[str, str]] = {}
    for column in panel.columns:
        words = {word.value: word.text for word in column.words}
        for series in prometheus.now(column.expr):
            row = rows.setdefault(series.labels[panel.label], {})
            row[column.name] = words.get(series.last, f"{series.last:g}")
    return rows


def test_the_lag_of_each_query_names_its_next_step(prometheus: Prometheus) -> None:
    rows = cells(prometheus, "gamelake-lag", "Queries")

    assert {name: row["Next step"] for name, row in rows.items()} == {
        "ingest_events": "none",
        HANGING_QUERY: "batch hangs: phases below",
        "live_ops": "driver down: start it",
    }


def test_a_query_that_hangs_is_behind_since_a_time_and_is_never_caught_up(prometheus: Prometheus) -> None:
    row = cells(prometheus, "gamelake-lag", "Queries")[HANGING_QUERY]

    assert (row["Behind"], row["Caught up in"], row["Last progress"]) == ("700", "never", "600")
    assert float(row["Behind since"]) > RANGE_SECONDS


def test_a_query_without_a_driver_is_behind_since_its_last_progress(prometheus: Prometheus) -> None:
    row = cells(prometheus, "gamelake-lag", "Queries")["live_ops"]

    assert float(row["Behind"]) == 20
    assert row["Trend"] == "grows"


def test_a_phase_is_known_though_no_batch_ends(prometheus: Prometheus) -> None:
    assert set(cells(prometheus, "gamelake-lag", "Phases")) >= {"decide", "commit"}


def test_a_service_that_restarts_often_is_the_first_though_it_responds(prometheus: Prometheus) -> None:
    rows = cells(prometheus, "gamelake-services", "Services")

    most = max(rows, key=lambda job: float(rows[job].get("Starts in 1 h", 0)))
    assert (most, rows[most]["Now"]) == ("delivery", "up")
    assert rows["live-ops"]["Outages in 1 h"] == "1"


def test_an_alert_that_was_resolved_is_green_now_and_not_in_the_list(prometheus: Prometheus) -> None:
    panels = [panel for page in PAGES for row in page.rows for panel in row.panels if page.uid == "gamelake-services"]
    (history,) = (panel for panel in panels if panel.title == "When alerts fired")

    states = {name: [value for _, value in series.samples] for name, series in prometheus.shown(history)}

    assert states["TargetDown"][-1] == 0
    assert 1 in states["TargetDown"]
    assert states[f"StreamStalled {HANGING_QUERY}"][-1] == 1
    assert set(cells(prometheus, "gamelake-services", "Alerts that fire")) == {"StreamStalled"}


@pytest.fixture
def portal(prometheus: Prometheus) -> DashboardPages:
    """The portal's pages at the end of the bad hour."""
    return DashboardPages(GENERATED, PortalsPrometheus(prometheus.url, urllib3.PoolManager()), lambda: prometheus.end)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.uid)
def test_the_portal_shows_every_panel_of_a_dashboard(portal: DashboardPages, page: Page) -> None:
    text = portal.page(page.uid)

    panels = [panel for row in page.rows for panel in row.panels]
    assert [unescape(each) for each in re.findall("<caption>(.+?)</caption>", text)] == [each.title for each in panels]
    runbooks = {name for panel in panels for name in panel.runbooks}
    assert {name for name in runbooks if f'<a href="/documents/monitoring/runbooks/{name}/">' not in text} == set()
    assert "{{" not in text
    assert "NaN" not in text


def test_the_portal_shows_the_lag_with_its_next_step_and_its_curve(portal: DashboardPages) -> None:
    text = portal.page("gamelake-lag")

    queries = re.findall(r'<th scope="row">(\w+)</th><td class="number"[^>]*>(?:<span class="bad">)?([^<]+)', text)
    # The one that is furthest behind comes first.
    assert queries[:3] == [
        (HANGING_QUERY, "batch hangs: phases below"),
        ("live_ops", "driver down: start it"),
        ("ingest_events", "none"),
    ]
    curve = re.search(rf'<th scope="row">{HANGING_QUERY}</th><td><svg class="curve" .+?aria-label="(.+?)"', text)
    assert curve
    assert curve[1].endswith("to 11 min 40 s")
    assert '<a href="/documents/monitoring/runbooks/StreamStalled/">StreamStalled</a></th>' in text


def test_a_dashboard_without_prometheus_says_what_does_not_respond() -> None:
    settings = PortalSettings.from_env(
        {"PORTAL_PROMETHEUS_URL": f"http://127.0.0.1:{free_port()}", "PORTAL_DASHBOARDS": str(GENERATED)}
    )
    portal = PortalApp(settings, figure_source(settings), Questions(settings), metrics_of_process())

    home, response = (portal.respond("GET", path, {"host": "127.0.0.1"}) for path in ("/", "/d/gamelake-lag"))

    assert '<a href="/d/gamelake-lag">Dashboards</a>' in home.body
    assert (response.status, "Prometheus does not respond" in response.body) == (503, True)


def test_the_series_cover_more_games_than_a_legend_has_lines(prometheus: Prometheus) -> None:
    assert len(prometheus.now("count by (game) (gamelake_game_last_event_timestamp_seconds)")) > MOST_SERIES
    assert json.dumps(GONE_GAME) not in json.dumps([dict(s.labels) for s in prometheus.now("gamelake_table_rows")])
