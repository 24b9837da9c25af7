"""The folder of the generated console pages, and their contents."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from monitoring.consoles.page import LIVE, index_page, live_page, page
from monitoring.consoles.runbooks import RUNBOOKS, runbook_pages
from monitoring.grafana.page import Page

CONSOLES = Path(__file__).parents[1] / "prometheus" / "consoles"
INDEX = "index.html"


def consoles(pages: Sequence[Page]) -> Mapping[str, str]:
    """Path in the folder -> HTML text of each page; Prometheus' menu links to the index."""
    made = {f"{each.uid}.html": page(each, pages) for each in pages}
    made |= {f"{name}.html": live_page(name, pages) for name in LIVE}
    alerts = sorted(path.stem for path in RUNBOOKS.glob("*.md"))
    return {**made, **runbook_pages(), INDEX: index_page(pages, alerts)}


def committed() -> Mapping[str, Path]:
    """Path in the folder -> file of each page that is there."""
    return {path.relative_to(CONSOLES).as_posix(): path for path in sorted(CONSOLES.rglob("*.html"))}
