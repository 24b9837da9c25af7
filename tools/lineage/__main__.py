"""Draws the lineage of the lakehouse in GAMELAKE_LAKEHOUSE (docs/settings.md): `python -m tools.lineage`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from gamelake.model.errors import GamelakeError
from gamelake.observability.lineage.recorded import recorded, recorded_in
from gamelake.storage.settings import LakehouseSettings
from gamelake.storage.store import Store
from tools.lineage.page import as_page

OK, FAILED = 0, 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw the recorded lineage, and print the page's URI."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("build/lineage.html"), help="the page")
    parser.add_argument("--file", type=Path, help="the file of GAMELAKE_LINEAGE_FILE, instead of the lakehouse's table")
    options = parser.parse_args(arguments)
    try:
        page = _page(options.file)
    except GamelakeError as error:
        print(f"gamelake: {error}", file=sys.stderr)
        return FAILED
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(page, encoding="utf-8")
    print(options.output.resolve().as_uri())
    return OK


def _page(file: Path | None) -> str:
    if file is not None:
        return as_page(recorded_in(file), str(file))
    location = LakehouseSettings.from_env().location
    return as_page(recorded(Store(location)), location.uri)


if __name__ == "__main__":
    sys.exit(main())
