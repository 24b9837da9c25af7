"""In Chromium, the docs site finds the right pages, is legible and complete on a phone, and passes axe."""

import json
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import pytest

from gamelake.model.errors import StartupError
from tests.support.static_files import served
from tools.embedded.service import REPOSITORY
from tools.pictures.browser import python_and_chromium

SITE = REPOSITORY / "build" / "docs" / "site"
SCRIPT = REPOSITORY / "tests" / "support" / "docs_in_a_browser.py"
SMALLEST_TEXT = 10
# What a reader types, and the pages that must be among the first three results.
SEARCHES = {
    "unity": ["docs/gateway/"],
    "backup": ["docs/operations/"],
    "restore": ["docs/operations/"],
    "exactly once": ["docs/delivery-guarantees/"],
    "retention": ["docs/reference/storage/", "docs/kpis/"],
    "delete a player": ["docs/privacy/"],
    "gdpr": ["docs/privacy/"],
    "late events": ["docs/kpis/"],
    "cost": ["docs/scaling/"],
    "kubernetes": ["docs/cluster/"],
    "grafana": ["docs/monitoring/"],
    "alert": ["docs/monitoring/"],
    "upgrade": ["docs/operations/"],
    "python sdk": ["services/sdk/"],
    "duckdb": ["docs/connecting/"],
    "docker": ["docs/local/"],
    "personal data": ["docs/privacy/"],
    "add a game": ["docs/how-to/add-a-game/"],
}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served(SITE) as address:
        yield address


@pytest.fixture(scope="module")
def seen(address: str, missing_service: Callable[[str], NoReturn]) -> dict[str, Any]:
    try:
        python, chromium = python_and_chromium()
    except StartupError as error:
        missing_service(str(error))
    if not (SITE / "index.html").exists():
        missing_service("the docs site is missing: run `make docs`")
    command = (python, str(SCRIPT), chromium, address, json.dumps(list(SEARCHES)))
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


@pytest.mark.parametrize("query", SEARCHES)
def test_a_reader_finds_the_page_among_the_first_three_results(query: str, seen: dict[str, Any]) -> None:
    assert [page for page in SEARCHES[query] if page not in seen["results"][query]] == []


def test_no_search_shows_a_decision_before_a_page_for_users(seen: dict[str, Any]) -> None:
    first = {query: pages[0] for query, pages in seen["results"].items()}

    assert [query for query, page in first.items() if page.startswith("docs/decisions/")] == []


@pytest.mark.usefixtures("seen")
def test_the_search_does_not_index_the_source_of_a_diagram() -> None:
    index = json.loads((SITE / "search" / "search_index.json").read_text(encoding="utf-8"))

    assert [page["location"] for page in index["docs"] if "flowchart TB" in page["text"]] == []


def test_diagrams_are_legible_and_commands_complete_on_a_phone(seen: dict[str, Any]) -> None:
    phone = seen["phone"]
    sizes = {path: sizes for path, sizes in phone["text_sizes"].items() if sizes}

    assert sizes
    assert {path: found for path, found in sizes.items() if min(found) < SMALLEST_TEXT} == {}
    # The first page's diagram is seen whole.
    assert phone["scrolled"][""] == 0
    assert {path: cut for path, cut in phone["cut_off"].items() if cut} == {}
    assert phone["too_wide"] == []


def test_axe_finds_nothing_on_pages_and_in_the_search_in_light_and_dark(seen: dict[str, Any]) -> None:
    assert seen["violations"] == []


def test_a_page_names_version_and_source_and_loads_nothing_from_other_hosts(seen: dict[str, Any], address: str) -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]

    assert seen["source"].startswith(f"Gamelake {project['version']}")
    assert seen["source_link"].endswith(("README.md", "README.md.txt"))
    assert seen["hosts"] == [address.removeprefix("http://").rstrip("/")]
    assert seen["problems"] == []
