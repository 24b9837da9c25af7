"""Draws the page of the latest run anew: `python -m tools.demo.redraw`, with what `make quality` has found since."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from gamelake.model.errors import GamelakeError
from tools.demo.figures import Summary
from tools.demo.options import DIRECTORY, Places
from tools.demo.report import as_page
from tools.demo.validation import newest_validation


def draw(summary: Summary, places: Places) -> None:
    """Write the page of a run, with what was found in its tables."""
    places.report.write_text(as_page(summary, newest_validation(places.lakehouse)), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page again; without a run there is nothing to do."""
    parser = argparse.ArgumentParser(prog="python -m tools.demo.redraw", description=__doc__)
    parser.add_argument("--directory", type=Path, default=DIRECTORY, help="of the demo; default: build/demo")
    places = Places(parser.parse_args(arguments).directory.resolve())
    if not places.summary.exists():
        return 0
    try:
        summary = Summary.from_json(places.summary.read_bytes())
    except GamelakeError as error:
        print(f"gamelake: {places.summary}: {error}", file=sys.stderr)
        return 1
    draw(summary, places)
    print(f"Report: {places.report.as_uri()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
