"""Writes the pages: `python -m monitoring.consoles`."""

import sys

from monitoring.consoles.files import CONSOLES, committed, consoles
from monitoring.grafana.dashboards import PAGES


def main() -> int:
    """Write each page, and remove those that no dashboard and no runbook makes any more."""
    files = consoles(PAGES)
    for name, path in committed().items():
        if name not in files:
            path.unlink()
    for name, text in files.items():
        path = CONSOLES / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
