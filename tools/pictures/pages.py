"""Takes the pictures of pages in Chromium; the Python of build/browser runs it: `pages.py CHROMIUM TASKS`.

TASKS is JSON: a list of objects with `url`, `file`, `width`, `height`, `press` (the name of a button to press first, or
""), `wait` (a selector to wait for) and `certificate` (a file with a certificate to show and its key, or "").
"""

import json
import os
import sys

from playwright.sync_api import sync_playwright

_MILLISECONDS = 90_000


def main(chromium: str, tasks: str) -> None:
    """Take all of them."""
    # The sandbox of Chromium does not work for root.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        for task in json.loads(tasks):
            origin = "/".join(task["url"].split("/")[:3])
            shown = {"origin": origin, "certPath": task["certificate"], "keyPath": task["certificate"]}
            context = browser.new_context(
                viewport={"width": task["width"], "height": task["height"]},
                color_scheme="light",
                client_certificates=[shown] if task["certificate"] else [],
                # The certificate is this machine's, whose authority no browser knows.
                ignore_https_errors=bool(task["certificate"]),
            )
            page = context.new_page()
            page.set_default_timeout(_MILLISECONDS)
            page.goto(task["url"])
            if task["press"]:
                page.get_by_role("button", name=task["press"]).click()
            page.wait_for_selector(task["wait"])
            page.screenshot(path=task["file"])
            context.close()
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
