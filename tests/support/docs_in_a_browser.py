"""Reads the docs site in Chromium as a person does, and prints what it found as JSON.

Run by the Python of build/browser (make browser), which has Playwright and axe:
`docs_in_a_browser.py CHROMIUM URL QUERIES`, with the queries for the site's search as a JSON list.
"""

import json
import os
import sys
from typing import Any
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

MILLISECONDS = 20_000
PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1440, "height": 900}
# The first page, a guide with commands, and one whose tables are wider than a phone.
FOR_AXE = ("", "docs/roles/on-call/", "docs/kpis/")
CONFORMANCE = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}
# Without what passes, axe takes a third of the time.
_BRIEFLY = {"resultTypes": ["violations"]}
ALL_RULES = {"runOnly": CONFORMANCE, "rules": {"aria-dialog-name": {"enabled": True}}, **_BRIEFLY}
# The rules whose result depends on the scheme.
COLOUR_RULES = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}, **_BRIEFLY}
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
_SCROLLED_DIAGRAMS = """
  [...document.querySelectorAll("div.mermaid")].filter(host => host.scrollWidth > host.clientWidth).length
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
    found: dict[str, Any] = {"text_sizes": {}, "scrolled": {}, "cut_off": {}, "too_wide": []}
    for path in ON_A_PHONE:
        page.goto(f"{url}{path}")
        # The theme draws a diagram once it has its script.
        page.wait_for_function("!document.querySelector('pre.mermaid')")
        found["text_sizes"][path] = page.evaluate(_TEXT_SIZES)
        found["scrolled"][path] = page.evaluate(_SCROLLED_DIAGRAMS)
        found["cut_off"][path] = page.evaluate(_CUT_OFF)
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found["too_wide"].append(path)
    return found


def violations(browser: Browser, url: str) -> list[str]:
    """Return what axe finds wrong on a phone and a desktop, in both schemes, also while the search is open."""
    page = browser.new_page()
    page.set_default_timeout(MILLISECONDS)
    found: list[str] = []
    for path in FOR_AXE:
        page.goto(f"{url}{path}")
        # A colour that is still changing would be measured.
        page.add_style_tag(content="*, ::before, ::after { transition: none !important }")
        found += _violations_of(page, path or "the first page")
    page.keyboard.press("s")
    page.keyboard.type("pseudonym")
    page.wait_for_selector(".md-search-result__item mark")
    found += _violations_of(page, "the search", ".md-search")
    page.close()
    return found


def _violations_of(page: Page, name: str, part: str = "body") -> list[str]:
    found = []
    for size in (DESKTOP, PHONE):
        page.set_viewport_size(size)
        for scheme, rules in (("default", ALL_RULES), ("slate", COLOUR_RULES)):
            # As the theme's button does, without loading the page again.
            page.evaluate("scheme => document.body.setAttribute('data-md-color-scheme', scheme)", scheme)
            for violation in Axe().run(page, context=part, options=rules).response["violations"]:
                where = f"{name}, {size['width']} px, {scheme}"
                found += [f"{where}: {violation['id']}: {node['html']}" for node in violation["nodes"]]
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
            "violations": violations(browser, url),
            "source": source.inner_text(),
            "source_link": source.locator("a").get_attribute("href"),
            "hosts": sorted(hosts),
            "problems": problems,
        }
        browser.close()
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
