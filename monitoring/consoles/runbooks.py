"""Converts the runbooks to console pages, so that an alert's link opens one wherever Prometheus responds."""

import re
from collections.abc import Mapping
from html import escape
from pathlib import Path

from markdown_it import MarkdownIt

RUNBOOKS = Path(__file__).parents[1] / "runbooks"
FOLDER = "runbooks"

_LINK_TO_RUNBOOK = re.compile(r'href="(\w+)\.md(#[\w-]*)?"')
_LINK_TO_DOCUMENT = re.compile(r'<a href="[./]+/(?!/)([^"]*)">(.*?)</a>')


def runbook_pages() -> Mapping[str, str]:
    """File name -> HTML text of each runbook, relative to the folder of the console pages."""
    return {f"{FOLDER}/{path.stem}.html": _page(path) for path in sorted(RUNBOOKS.glob("*.md"))}


def _page(path: Path) -> str:
    body = MarkdownIt("commonmark").enable("table").render(path.read_text(encoding="utf-8"))
    body = _LINK_TO_RUNBOOK.sub(r'href="\1.html\2"', body)
    # Documents of the repository are not served: the reader gets their path.
    body = _LINK_TO_DOCUMENT.sub(lambda link: f"{link[2]} (<code>{escape(link[1])}</code>)", body)
    # What looks like a template's action in a runbook is text.
    body = body.replace("{{", '{{ "{{" }}')
    head = f'{{{{ template "gamelake-head" "{path.stem}" }}}}\n<nav><a href="../index.html">All pages</a></nav>'
    return f'{head}\n<article>\n{body}</article>\n{{{{ template "gamelake-foot" . }}}}\n'
