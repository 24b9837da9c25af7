"""Where the generated dashboards are, and what should stand there."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from monitoring.grafana.page import Page

GENERATED = Path(__file__).parent / "generated"


def generated(pages: Iterable[Page]) -> Mapping[str, str]:
    """The text of each file, by its name."""
    return {f"{page.uid}.json": page.to_json() for page in pages}
