"""Superset's dashboards in Chromium show the rows that Trino gives to the person: `make test-bi` brings it all up."""

import json
import os
import subprocess
from collections.abc import Callable
from functools import cache
from typing import Any, NoReturn

import pytest

from gamelake.model.credentials import read_credentials
from gamelake.model.errors import StartupError
from tests.stack.platform import ROOT, SECRETS
from tests.stack.trino_users import ANALYST, User
from tests.support.eventually import eventually
from tools.dashboards.assets import charts_of
from tools.dashboards.pages import ACQUISITION, DATASETS, ONE_GAME, PAGES, PORTFOLIO, ROAS, SupersetDashboard
from tools.pictures.browser import python_and_chromium
from tools.stack import url

pytestmark = pytest.mark.skipif(os.environ.get("BI") != "1", reason="make test-bi runs these")

SCRIPT = ROOT / "tests/support/superset_in_a_browser.py"
PICTURES = ROOT / "build/bi/pictures"
PLAYERS_TODAY = (
    "SELECT CAST(coalesce(sum(active_players), 0) AS bigint) FROM gold.kpi_daily "
    "WHERE begins <= current_timestamp AND ends > current_timestamp"
)
VIEWS = "SELECT 1 FROM gold.revenue_per_day, gold.kpi_cohorts, gold.kpi_active_players LIMIT 1"
GAMES = "SELECT count(DISTINCT game_name) FROM gold.kpi_daily"
COMPUTED_SECONDS = 600
SECONDS_TO_OPEN = 540
ARCHERY_ANALYST = User("analyst-archery-duel")


@pytest.fixture(scope="module", autouse=True)
def figures(missing_service: Callable[[str], NoReturn]) -> None:
    """Gold has the figures of the players, and a browser is there."""
    try:
        python_and_chromium()
    except StartupError as error:
        missing_service(str(error))
    eventually(lambda: not ANALYST.refusal(VIEWS), timeout=COMPUTED_SECONDS)
    eventually(lambda: ANALYST.one(GAMES) > 1, timeout=COMPUTED_SECONDS)


@cache
def opened(user: User, *slugs: str) -> dict[str, Any]:
    """What a person sees on dashboards."""
    python, chromium = python_and_chromium()
    password = read_credentials(SECRETS / f"trino-{user.name}", user.name).password
    pictures = PICTURES / user.name
    pictures.mkdir(parents=True, exist_ok=True)
    command = (python, str(SCRIPT), chromium, url("SUPERSET_PORT"), user.name, str(pictures), *slugs)
    done = subprocess.run(command, input=password, capture_output=True, text=True, check=False, timeout=SECONDS_TO_OPEN)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def number(user: User, slug: str, chart: str) -> int:
    """The figure that a chart shows."""
    text = opened(user, *(page.slug for page in PAGES))["pages"][slug]["charts"][chart]
    # The lines before it are the title and the number of filters.
    return int(text.splitlines()[-1].replace(",", ""))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.slug)
def test_an_analyst_sees_each_chart_of_a_dashboard_without_an_error(page: SupersetDashboard) -> None:
    seen = opened(ANALYST, *(each.slug for each in PAGES))["pages"][page.slug]
    titles = {chart.title for chart in charts_of(page)}

    assert seen["title"] == page.title
    assert seen["charts"].keys() == titles
    # Live operations make their tables with the first signal and the first minute, an import the cost of players.
    missing = {table for table in DATASETS if ANALYST.refusal(f"TABLE {table} LIMIT 1") == "TABLE_NOT_FOUND"}
    assert missing <= {"gold.live_ops_signals", "gold.live_ops_minutes", ACQUISITION, ROAS}
    failed = {title for title, text in seen["charts"].items() if "Data error" in text}
    assert failed <= {chart.title for chart in charts_of(page) if chart.dataset in missing}


def test_the_players_of_today_are_those_of_sql() -> None:
    assert number(ANALYST, PORTFOLIO.slug, "Players today") == ANALYST.one(PLAYERS_TODAY)


def test_the_dashboard_of_one_game_begins_with_the_first_game() -> None:
    first = ANALYST.one("SELECT min(game_name) FROM gold.kpi_daily")
    players = ANALYST.one(f"{PLAYERS_TODAY} AND game_name = '{first}'")

    assert number(ANALYST, ONE_GAME.slug, "Game's players today") == players


def test_an_analyst_of_one_game_sees_this_game_only() -> None:
    players = number(ARCHERY_ANALYST, PORTFOLIO.slug, "Players today")

    assert ARCHERY_ANALYST.ask("SELECT DISTINCT game_name FROM gold.kpi_daily") == [["Archery Duel"]]
    assert players == ARCHERY_ANALYST.one(PLAYERS_TODAY)
    assert 0 < players < ANALYST.one(PLAYERS_TODAY)


def test_a_browser_asks_no_other_host() -> None:
    hosts = opened(ANALYST, *(page.slug for page in PAGES))["hosts"]

    assert hosts == [url("SUPERSET_PORT").split("/")[2]]


def test_a_wrong_password_is_refused() -> None:
    python, chromium = python_and_chromium()
    command = (python, str(SCRIPT), chromium, url("SUPERSET_PORT"), ANALYST.name, str(PICTURES))
    done = subprocess.run(command, input="wrong", capture_output=True, text=True, check=False, timeout=SECONDS_TO_OPEN)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"refused": True}
