"""Draws the lineage of the lakehouse in GAMELAKE_LAKEHOUSE (docs/settings.md): `python -m tools.lineage`."""

import sys
from collections.abc import Sequence
from pathlib import Path

from gamelake.command import command_parser
from gamelake.model.errors import GamelakeError
from gamelake.objects.settings import LakehouseSettings
from gamelake.objects.store import Store
from gamelake.observability.lineage.recorded import recorded, recorded_in
from tools.lineage.page import as_page
from tools.stack import lakehouse

OK, FAILED = 0, 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw the recorded lineage, and print the page's URI."""
    parser = command_parser(__doc__)
    parser.add_argument("--output", type=Path, default=Path("build/lineage.html"), help="the page")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--file", type=Path, help="the file of GAMELAKE_LINEAGE_FILE, instead of the lakehouse's table")
    source.add_argument("--stack", action="store_true", help="the tables of the running stack, by Trino's key")
    options = parser.parse_args(arguments)
    try:
        page = _page(options.file, of_stack=options.stack)
    except GamelakeError as error:
        print(f"gamelake: {error}", file=sys.stderr)
        return FAILED
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(page, encoding="utf-8")
    print(options.output.resolve().as_uri())
    return OK


def _page(file: Path | None, *, of_stack: bool) -> str:
    if file is not None:
        return as_page(recorded_in(file), str(file))
    # Its key can only read.
    location = lakehouse("trino") if of_stack else LakehouseSettings.from_env().location
    return as_page(recorded(Store(location)), location.uri)


if __name__ == "__main__":
    sys.exit(main())
