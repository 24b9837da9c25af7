"""Writes the report of the latest run again, with newer validation results: `python -m tools.demo.redraw`."""

import sys
from collections.abc import Sequence
from pathlib import Path

from gamelake.command import command_parser
from gamelake.model.errors import GamelakeError
from tools.demo.figures import Summary
from tools.demo.options import DIRECTORY, DemoPaths
from tools.demo.report import as_page
from tools.demo.validation import newest_validation


def draw(summary: Summary, paths: DemoPaths) -> None:
    """Write the report of a run, with the newest validation of its tables."""
    paths.report.write_text(as_page(summary, newest_validation(paths.lakehouse)), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the report again; without an earlier run there is nothing to do."""
    parser = command_parser(__doc__)
    parser.add_argument("--directory", type=Path, default=DIRECTORY, help="of the demo; default: build/demo")
    paths = DemoPaths(parser.parse_args(arguments).directory.resolve())
    if not paths.summary.exists():
        return 0
    try:
        summary = Summary.from_json(paths.summary.read_bytes())
    except GamelakeError as error:
        print(f"gamelake: {paths.summary}: {error}", file=sys.stderr)
        return 1
    draw(summary, paths)
    print(f"Report: {paths.report.as_uri()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
