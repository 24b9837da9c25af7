"""Where Prometheus finds the pages, and what should stand there."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from monitoring.consoles.page import index_page, page
from monitoring.grafana.page import Page

CONSOLES = Path(__file__).parents[1] / "prometheus" / "consoles"
INDEX = "index.html"


def consoles(pages: Sequence[Page]) -> Mapping[str, str]:
    """The text of each page, by its file's name; the index is where Prometheus' menu leads to."""
    return {f"{each.uid}.html": page(each, pages) for each in pages} | {INDEX: index_page(pages)}
