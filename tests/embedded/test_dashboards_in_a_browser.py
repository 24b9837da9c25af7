"""In Chromium, the tables of the portal's dashboards are legible on a phone, a tablet and a desktop."""

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import pytest

from gamelake.model.errors import StartupError
from gamelake.observability.faults import load_faults
from monitoring.grafana.files import GENERATED
from services.portal.dashboard_page import DashboardPages
from services.portal.figures import Overview, StreamFigures
from services.portal.practice import Practice, practice_page
from services.portal.prometheus import Prometheus, Sample, Series
from tests.support.static_files import served
from tools.embedded.service import REPOSITORY
from tools.pictures.browser import python_and_chromium

SCRIPT = REPOSITORY / "tests" / "support" / "dashboards_in_a_browser.py"
ASSETS = REPOSITORY / "services" / "portal" / "assets"
# The dashboards whose tables have most columns.
WIDE = ("gamelake-lag", "gamelake-services")
NOW = 1_790_000_000.0


class Labels(dict[str, str]):
    """Labels of a series; the value of one that is not listed is its name."""

    def get(self, name: str, default: object = None) -> str:
        """Return the value."""
        return super().get(name, name)


LONG_NAMES = {
    "alertname": "StreamReconciliationFailed",
    "game": "galaxy-miner-returns",
    "job": "ingest-events",
    "phase": "read and decode",
    "query": "ingest_events",
    "severity": "critical",
    "table": "silver/galaxy_miner_returns_events",
    "title": "Galaxy Miner Returns",
}


class WideValues(Prometheus):
    """Long names and values for every query."""

    def __init__(self) -> None: ...

    def at(self, moment: float, expression: str) -> list[Sample]:
        """Return two values."""
        others = {"alertname": "TargetDown", "game": "archery-duel", "job": "serving", "query": "live_ops"}
        return [
            Sample(Labels(LONG_NAMES), 93_784.0),
            Sample(Labels(LONG_NAMES | others), 1_234_567.0),
        ]

    def over_time(self, expression: str, start: float, end: float, step: int) -> list[Series]:
        """Return one curve."""
        return [Series(Labels(LONG_NAMES), tuple((end - place * step, 1.0 * place) for place in range(60, -1, -1)))]


def pages() -> Mapping[str, str]:
    """Return the pages by their names."""
    dashboards = DashboardPages(GENERATED, WideValues(), lambda: NOW)
    stream = StreamFigures(stream="ingest_events", is_up=True, records_per_second=12_345, lag=1_234_567)
    faults = load_faults(REPOSITORY / "monitoring/faults.yaml")
    practice = practice_page(Practice(Overview((), (stream,)), None, list(faults.values())))
    return {f"{uid}.html": dashboards.page(uid) for uid in WIDE} | {"practice.html": practice}


@pytest.fixture(scope="module")
def seen(
    tmp_path_factory: pytest.TempPathFactory, missing_service: Callable[[str], NoReturn]
) -> Mapping[str, Mapping[str, Any]]:
    try:
        python, chromium = python_and_chromium()
    except StartupError as error:
        missing_service(str(error))
    folder: Path = tmp_path_factory.mktemp("portal")
    texts = {**pages(), **{name: (ASSETS / name).read_text(encoding="utf-8") for name in ("portal.css", "portal.js")}}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    with served(folder) as address:
        command = (python, str(SCRIPT), chromium, address, json.dumps(list(pages())))
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found: Mapping[str, Mapping[str, Any]] = json.loads(ran.stdout)
    return found


def test_a_phone_shows_each_value_below_the_name_of_its_column(seen: Mapping[str, Mapping[str, Any]]) -> None:
    phones = {name: screens["phone"] for name, screens in seen.items()}

    assert [name for name, phone in phones.items() if not phone["named"]] == []
    assert {name: phone["unnamed"] for name, phone in phones.items() if phone["unnamed"]} == {}


def test_no_table_scrolls_sideways_on_a_phone(seen: Mapping[str, Mapping[str, Any]]) -> None:
    phones = {name: screens["phone"] for name, screens in seen.items()}

    assert {name: phone["scrolled"] for name, phone in phones.items() if phone["scrolled"]} == {}


def test_the_names_of_table_and_rows_stay_while_a_wide_table_scrolls(seen: Mapping[str, Mapping[str, Any]]) -> None:
    tablets = {name: screens["tablet"] for name, screens in seen.items()}

    assert any(tablet["scrolled"] for tablet in tablets.values())
    assert {name: tablet["lost"] for name, tablet in tablets.items() if tablet["lost"]} == {}


def test_axe_finds_nothing_and_pages_fit_every_screen(seen: Mapping[str, Mapping[str, Any]]) -> None:
    screens = {f"{name}, {screen}": found for name, of_page in seen.items() for screen, found in of_page.items()}

    assert {where: found["violations"] for where, found in screens.items() if found.get("violations")} == {}
    assert [where for where, found in screens.items() if found["is_too_wide"]] == []
