"""Writes the pages: `python -m monitoring.consoles`."""

import sys

from monitoring.consoles.files import CONSOLES, consoles
from monitoring.grafana.dashboards import PAGES


def main() -> int:
    """Write each page, and remove those that no dashboard makes any more."""
    files = consoles(PAGES)
    for path in CONSOLES.glob("*.html"):
        if path.name not in files:
            path.unlink()
    for name, text in files.items():
        (CONSOLES / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
