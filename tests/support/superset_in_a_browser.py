"""Opens dashboards of Superset in Chromium as a person does, and prints what they show as JSON.

Run by the Python of build/browser (make browser): `superset_in_a_browser.py CHROMIUM URL USER PICTURES SLUG...`, with
the password on the standard input. PICTURES is the folder for a picture of each tab.
"""

import json
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

MILLISECONDS = 180_000
_LOADING = "[data-test=loading-indicator], .loading"


def log_in(page: Page, url: str, user: str, password: str) -> bool:
    """Log in on Superset's form. Return False if Superset refuses the password."""
    page.goto(f"{url}/login/")
    page.fill("input[name=username], [data-test=username-input]", user)
    page.fill("input[name=password], [data-test=password-input]", password)
    with page.expect_navigation(wait_until="networkidle"):
        page.click("[data-test=login-button], button[type=submit]")
    return "/login" not in page.url


def shown_by(page: Page, url: str, slug: str, pictures: Path) -> dict[str, Any]:
    """Open a dashboard, wait for its charts, and return what they show."""
    page.goto(f"{url}/superset/dashboard/{slug}/")
    page.wait_for_selector("[data-test=dashboard-header-container], [data-test=editable-title]")
    page.wait_for_selector("[data-test=chart-container], .chart-container")
    charts = _charts(page)
    page.screenshot(path=pictures / f"{slug}.png")
    for number, tab in enumerate(page.query_selector_all("[data-test=dashboard-component-tabs] [role=tab]")[1:], 2):
        tab.click()
        charts |= _charts(page)
        page.screenshot(path=pictures / f"{slug}-{number}.png")
    return {"title": page.title(), "charts": charts}


def _charts(page: Page) -> dict[str, str]:
    """Return what the charts of the open tab show, by their titles, when all have been loaded."""
    # The first value of a filter asks again.
    page.wait_for_load_state("networkidle")
    page.wait_for_function(f"() => document.querySelectorAll('{_LOADING}').length === 0")
    holders = [each for each in page.query_selector_all("[data-test-chart-name]") if each.is_visible()]
    return {holder.get_attribute("data-test-chart-name") or "": holder.inner_text() for holder in holders}


def main() -> None:
    chromium, url, user, folder, *slugs = sys.argv[1:]
    password = sys.stdin.read().strip()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = browser.new_context(ignore_https_errors=True, viewport={"width": 1600, "height": 2400})
        hosts: set[str] = set()
        failed: set[str] = set()
        page = context.new_page()
        page.set_default_timeout(MILLISECONDS)
        page.on("requestfinished", lambda request: hosts.add(request.url.split("/")[2]))
        page.on(
            "requestfailed", lambda request: None if request.failure == "csp" else failed.add(request.url.split("/")[2])
        )
        if log_in(page, url, user, password):
            pages = {slug: shown_by(page, url, slug, Path(folder)) for slug in slugs}
            result: dict[str, Any] = {"pages": pages, "hosts": sorted(hosts | failed)}
        else:
            result = {"refused": True}
        browser.close()
    sys.stdout.write(json.dumps(result))


if __name__ == "__main__":
    main()
