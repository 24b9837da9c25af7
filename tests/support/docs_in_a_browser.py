"""Reads the docs site in Chromium as a person does, and prints what it found as JSON.

Run by the Python of build/browser (make browser), which has Playwright: `docs_in_a_browser.py CHROMIUM URL QUERIES`,
with the queries for the site's search as a JSON list.
"""

import json
import os
import sys
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, sync_playwright

MILLISECONDS = 20_000
PHONE = {"width": 390, "height": 844}
# Pages with diagrams, long commands and wide tables.
ON_A_PHONE = ("", "docs/tutorial/", "docs/gateway/", "docs/stack/", "docs/architecture/", "docs/how-to/own-protobuf/")
BEST = 3
# The theme's shadows are closed.
_OPEN_SHADOWS = """
  const closed = Element.prototype.attachShadow
  Element.prototype.attachShadow = function (options) { return closed.call(this, {...options, mode: "open"}) }
"""
# The size of Mermaid's text, 16 px, by the scale of each diagram.
_TEXT_SIZES = """
  [...document.querySelectorAll("div.mermaid")].map(host => {
    const svg = host.shadowRoot.querySelector("svg")
    return 16 * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width
  })
"""
_CUT_OFF = """
  [...document.querySelectorAll(".highlight:not(.language-text) pre > code")]
    .filter(code => code.scrollWidth > code.clientWidth + 1).map(code => code.textContent)
"""


def results(page: Page, queries: list[str]) -> dict[str, list[str]]:
    """Return the first pages that the search shows for each query, as paths on the site."""
    base = urlsplit(page.url).path
    found = {}
    page.keyboard.press("s")
    for query in queries:
        # The theme searches when a key is released.
        for text in ("", query):
            page.fill(".md-search__input", text)
            page.press(".md-search__input", "End")
            if not text:
                page.wait_for_function("!document.querySelector('.md-search-result__item')")
        page.wait_for_selector(".md-search-result__item", state="attached")
        links = page.locator(".md-search-result__item > .md-search-result__link:first-child").evaluate_all(
            "links => links.map(link => link.href)"
        )
        found[query] = [urlsplit(link).path.removeprefix(base) for link in links[:BEST]]
    return found


def read_on_a_phone(browser: Browser, url: str) -> dict[str, Any]:
    """Measure diagrams and commands on a narrow screen."""
    page = browser.new_page(viewport=PHONE)
    page.set_default_timeout(MILLISECONDS)
    page.add_init_script(_OPEN_SHADOWS)
    found: dict[str, Any] = {"text_sizes": {}, "cut_off": {}, "too_wide": []}
    for path in ON_A_PHONE:
        page.goto(f"{url}{path}")
        # The theme draws a diagram once it has its script.
        page.wait_for_function("!document.querySelector('pre.mermaid')")
        found["text_sizes"][path] = page.evaluate(_TEXT_SIZES)
        found["cut_off"][path] = page.evaluate(_CUT_OFF)
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found["too_wide"].append(path)
    return found


def main(chromium: str, url: str, queries: str) -> None:
    """Search, read on a phone, and print what was found."""
    # The sandbox of Chromium does not work for root, as whom CI runs.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        page = browser.new_page()
        page.set_default_timeout(MILLISECONDS)
        hosts: set[str] = set()
        problems: list[str] = []
        page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(url)
        source = page.locator(".gamelake-source")
        found = {
            "results": results(page, json.loads(queries)),
            "phone": read_on_a_phone(browser, url),
            "source": source.inner_text(),
            "source_link": source.locator("a").get_attribute("href"),
            "hosts": sorted(hosts),
            "problems": problems,
        }
        browser.close()
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
