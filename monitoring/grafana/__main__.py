"""Writes the dashboards' JSON: `python -m monitoring.grafana`."""

import sys

from monitoring.grafana.dashboards import PAGES
from monitoring.grafana.files import GENERATED, generated


def main() -> int:
    """Write each dashboard to its own file, and remove files without a dashboard."""
    files = generated(PAGES)
    GENERATED.mkdir(exist_ok=True)
    for path in GENERATED.glob("*.json"):
        if path.name not in files:
            path.unlink()
    for name, text in files.items():
        (GENERATED / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
