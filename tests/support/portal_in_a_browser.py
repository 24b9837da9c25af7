"""Opens the portal in Chromium as a person does, by the keyboard, and prints what it found as JSON.

Run by the Python of build/browser (make browser), which has Playwright and axe: `portal_in_a_browser.py CHROMIUM URL`
for the portal of `make dev`, `portal_in_a_browser.py CHROMIUM URL CERTIFICATE` for that of the stack, which wants one.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Route, sync_playwright

QUESTION = "How many events came from each game, hour by hour?"
LAG = "/d/gamelake-lag"
MILLISECONDS = 60_000
MOST_TABS = 200


class Watched:
    """A page, and what went wrong on it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.problems: list[str] = []
        self.hosts: set[str] = set()
        page.set_default_timeout(MILLISECONDS)
        page.on("console", lambda message: self.problems.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("request", lambda request: self.hosts.add(request.url.split("/")[2]))

    def violations(self) -> list[str]:
        """What axe finds wrong, with the elements."""
        found: list[dict[str, Any]] = Axe().run(self.page).response["violations"]
        return [f"{each['id']}: {node['html']}" for each in found for node in each["nodes"]]

    def focused(self) -> str:
        """Return the text or name of the element that has the focus."""
        text: str = self.page.evaluate(
            "document.activeElement.getAttribute('aria-label') || document.activeElement.textContent"
        )
        return text.strip()


@contextmanager
def opened(browser: Browser, url: str, **options: Any) -> Iterator[Watched]:  # noqa: ANN401 # Playwright's
    """The first page in a window of its own."""
    context = browser.new_context(**options)
    watched = Watched(context.new_page())
    watched.page.goto(url)
    yield watched
    context.close()


def tab_to(watched: Watched, name: str) -> list[str]:
    """Press Tab until an element of this name has the focus. Return the names on the way."""
    names: list[str] = []
    while len(names) < MOST_TABS and name not in names:
        watched.page.keyboard.press("Tab")
        names.append(watched.focused())
    return names


def run_by_keyboard(watched: Watched) -> dict[str, Any]:
    """Reach the questions and then the button of one by Tab alone, press it, and read the result."""
    names = tab_to(watched, "Questions")
    with watched.page.expect_navigation():
        watched.page.keyboard.press("Enter")
    tab_to(watched, f"Run: {QUESTION}")
    with watched.page.expect_navigation():
        watched.page.keyboard.press("Enter")
    watched.page.wait_for_selector("[role=status]")
    return {
        "first_focus": names[0],
        "heading": watched.page.inner_text("h1"),
        "status": watched.page.inner_text("[role=status]"),
        "columns": watched.page.locator("thead th").all_inner_texts(),
        "violations": watched.violations(),
    }


def refreshed(watched: Watched) -> bool:
    """Return True if the figures are refreshed while the page is open."""
    before = watched.page.inner_text("#status > .as-of")
    watched.page.wait_for_function("text => document.querySelector('#status > .as-of').innerText !== text", arg=before)
    return True


def without_portal(watched: Watched) -> str:
    """What the page shows of the figures while the portal is away."""

    def fail(route: Route) -> None:
        route.abort()

    watched.page.route("**/status", fail)
    watched.page.wait_for_event("requestfailed")
    shown: str = watched.page.inner_text("#services")
    return shown


def set_load(watched: Watched, rate: str) -> dict[str, Any]:
    """Choose a load by its button with the keyboard; the page then says what it is."""
    button = watched.page.get_by_role("button", name=f"{rate} events per second", exact=True)
    button.focus()
    # The response is the page again.
    with watched.page.expect_navigation():
        watched.page.keyboard.press("Enter")
    return {
        "on": watched.page.inner_text("#status ul"),
        "pressed": watched.page.locator("[aria-pressed=true]").all_inner_texts(),
        "violations": watched.violations(),
        "problems": watched.problems,
    }


def read_documents(page: Page) -> dict[str, Any]:
    """See the diagrams of the docs site's first page, and search all of it."""
    # The theme puts each diagram that it has drawn into an element of its own.
    page.wait_for_selector("div.mermaid", state="attached")
    diagrams = page.locator("div.mermaid").count()
    not_drawn = page.locator("pre.mermaid").count()
    page.keyboard.press("s")
    page.keyboard.type("pseudonym")
    page.wait_for_selector(".md-search-result__item", state="attached")
    return {"diagrams": diagrams, "not_drawn": not_drawn, "results": page.locator(".md-search-result__item").count()}


def texts_cut_off(page: Page) -> list[str]:
    """The texts of charts that reach beyond their picture."""
    texts: list[str] = page.evaluate("""[...document.querySelectorAll("svg.chart text")].filter(text => {
        const frame = text.ownerSVGElement.getBoundingClientRect(), box = text.getBoundingClientRect();
        return box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1;
    }).map(text => text.textContent)""")
    return texts


def smallest_text(page: Page) -> float:
    """The size in pixels of the smallest text in the pictures that are shown."""
    size: float = page.evaluate("""Math.min(...[...document.querySelectorAll("svg text")]
        .filter(text => text.getBoundingClientRect().width)
        .map(text => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a))""")
    return size


def copied(watched: Watched) -> str:
    """What the first button that copies the command of a password has copied."""
    watched.page.locator("section[aria-labelledby=links] button[data-copy]").first.click()
    watched.page.wait_for_selector("button[data-copy]:has-text('Copied')")
    text: str = watched.page.evaluate("navigator.clipboard.readText()")
    return text


def check_stack(browser: Browser, url: str, certificate: str) -> dict[str, Any]:
    """The pages of the stack's portal: that of load and faults has a button for each, that of the lag fits a phone."""
    found: dict[str, Any] = {"violations": [], "problems": []}
    options = {
        "client_certificates": [{"origin": url, "certPath": certificate, "keyPath": certificate}],
        # No browser knows the authority of this machine.
        "ignore_https_errors": True,
        "permissions": ["clipboard-read", "clipboard-write"],
    }
    for scheme in ("light", "dark"):
        for path in ("/", "/practice", LAG):
            with opened(browser, f"{url}{path}", color_scheme=scheme, **options) as watched:
                found["violations"] += watched.violations()
                if path == "/":
                    found["copied"] = copied(watched)
                elif path == "/practice":
                    found["switches"] = watched.page.get_by_role("button", name="Switch on").count()
                found["problems"] += watched.problems
    with opened(browser, f"{url}{LAG}", viewport={"width": 390, "height": 844}, **options) as lag:
        found["wider_than_a_phone"] = lag.page.evaluate("document.documentElement.scrollWidth > innerWidth")
    return found


def check_dev(browser: Browser, url: str) -> dict[str, Any]:
    """All that the portal of `make dev` can do."""
    found: dict[str, Any] = {"violations": {}, "problems": [], "hosts": []}
    for scheme in ("light", "dark"):
        with opened(browser, url, color_scheme=scheme) as home:
            found["violations"][scheme] = home.violations()
            found[f"background_{scheme}"] = home.page.evaluate("getComputedStyle(document.body).backgroundColor")
            found["refreshed"] = refreshed(home)
            found["problems"] += home.problems
            found["hosts"] += home.hosts
            found["without_portal"] = without_portal(home)
    with opened(browser, url) as home:
        found["by_keyboard"] = run_by_keyboard(home)
        found["problems"] += home.problems
    with opened(browser, f"{url}/questions", java_script_enabled=False) as home:
        home.page.get_by_role("button", name=f"Run: {QUESTION}").click()
        home.page.wait_for_selector("[role=status]")
        found["without_script"] = home.page.inner_text("[role=status]")
    with opened(browser, url, viewport={"width": 320, "height": 640}) as home:
        found["wider_than_a_phone"] = home.page.evaluate("document.documentElement.scrollWidth > innerWidth")
        found["cut_off"] = texts_cut_off(home.page)
    with opened(browser, f"{url}/lineage", viewport={"width": 390, "height": 844}) as lineage:
        found["lineage_text"] = smallest_text(lineage.page)
    with opened(browser, f"{url}/practice") as practice:
        found["load"] = set_load(practice, "50")
        found["hosts"] += practice.hosts
    with opened(browser, f"{url}/lineage") as lineage:
        found["lineage"] = lineage.page.locator("svg").count()
        found["problems"] += lineage.problems
        found["hosts"] += lineage.hosts
    with opened(browser, f"{url}/documents/") as documents:
        found["documents"] = read_documents(documents.page)
        found["problems"] += documents.problems
        found["hosts"] += documents.hosts
    return found


def main(chromium: str, url: str, certificate: str = "") -> None:
    """Check everything, and print it."""
    # The sandbox of Chromium does not work for root, as whom CI runs.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        found = check_stack(browser, url, certificate) if certificate else check_dev(browser, url)
        browser.close()
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
