"""Opens pages with tables at three widths in Chromium, and prints what it found as JSON.

Run by the Python of build/browser (make browser), which has Playwright and axe:
`dashboards_in_a_browser.py CHROMIUM URL PAGES`, with the names of the pages as a JSON list.
"""

import json
import os
import sys
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, sync_playwright

PHONE, TABLET, DESKTOP = (390, 844), (820, 1180), (1440, 900)
# Tables that are wider than their part of the screen.
_SCROLLED = """
  [...document.querySelectorAll(".scroll")].filter(region => region.scrollWidth > region.clientWidth)
    .map(region => region.getAttribute("aria-label"))
"""
# The values in cards, with and without the name of their column above them.
_VALUES = """
  () => {
    const cells = [...document.querySelectorAll(".cards td:not(:empty)")]
    const isNamed = cell => getComputedStyle(cell, "::before").content === JSON.stringify(cell.dataset.label)
    const unnamed = cells.filter(cell => !isNamed(cell))
    return {named: cells.length - unnamed.length, unnamed: unnamed.map(cell => cell.outerHTML)}
  }
"""
# The rows whose name leaves the screen when their last value is scrolled into it.
_LOST = """
  [...document.querySelectorAll(".scroll")].flatMap(region => {
    region.scrollLeft = region.scrollWidth
    const left = region.getBoundingClientRect().left
    const names = [...region.querySelectorAll("caption, tr > :first-child")]
    return names.filter(name => name.getBoundingClientRect().left < left - 1).map(name => name.textContent)
  })
"""


def inspect(page: Page, size: tuple[int, int]) -> dict[str, Any]:
    """Return what is wrong with the open page on a screen of this size."""
    page.set_viewport_size({"width": size[0], "height": size[1]})
    return {
        **page.evaluate(_VALUES),
        "is_too_wide": page.evaluate("document.documentElement.scrollWidth > innerWidth"),
        "scrolled": page.evaluate(_SCROLLED),
        "lost": page.evaluate(_LOST),
    }


def violations(page: Page) -> list[str]:
    """Return what axe finds wrong in light and dark."""
    found = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for each in Axe().run(page).response["violations"]:
            found += [f"{scheme}: {each['id']}: {node['html']}" for node in each["nodes"]]
    return found


def main(chromium: str, url: str, pages: str) -> None:
    """Inspect each page on each screen, and print the findings."""
    # The sandbox of Chromium does not work for root, as whom CI runs.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    found: dict[str, dict[str, Any]] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        page = browser.new_page()
        for name in json.loads(pages):
            page.goto(f"{url}{name}")
            found[name] = {"tablet": inspect(page, TABLET)}
            for screen, size in {"phone": PHONE, "desktop": DESKTOP}.items():
                found[name][screen] = {**inspect(page, size), "violations": violations(page)}
        browser.close()
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
