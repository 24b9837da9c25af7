"""The folder of the generated dashboards, and their contents."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from monitoring.grafana.page import Page

GENERATED = Path(__file__).parent / "generated"


def generated(pages: Iterable[Page]) -> Mapping[str, str]:
    """File name -> JSON text of each dashboard."""
    return {f"{page.uid}.json": page.to_json() for page in pages}
