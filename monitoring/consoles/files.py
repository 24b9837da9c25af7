"""The folder of the generated console pages, and their contents."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from monitoring.consoles.page import index_page, page
from monitoring.grafana.page import Page

CONSOLES = Path(__file__).parents[1] / "prometheus" / "consoles"
INDEX = "index.html"


def consoles(pages: Sequence[Page]) -> Mapping[str, str]:
    """File name -> HTML text of each page; Prometheus' menu links to the index."""
    return {f"{each.uid}.html": page(each, pages) for each in pages} | {INDEX: index_page(pages)}
