"""Removes the data of `make dev`, after asking: `python -m tools.dev.clean`."""

import argparse
import sys
from collections.abc import Sequence

from gamelake.model.errors import GamelakeError
from tools.dev.directory import remove
from tools.dev.options import add_directory

OK, FAILED = 0, 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Remove the directory; 1 if that was not confirmed, or not possible."""
    parser = argparse.ArgumentParser(prog="python -m tools.dev.clean", description=__doc__)
    add_directory(parser)
    parser.add_argument("--yes", action="store_true", help="don't ask")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be removed")
    options = parser.parse_args(arguments)

    def is_confirmed() -> bool:
        return bool(options.yes) or _answer() in {"y", "yes"}

    try:
        is_done = remove(options.directory.resolve(), is_confirmed=is_confirmed, dry_run=options.dry_run)
    except GamelakeError as error:
        print(f"gamelake: {error}", file=sys.stderr)
        return FAILED
    return OK if is_done else FAILED


def _answer() -> str:
    try:
        return input("Remove it? [y/N] ")
    except EOFError:
        return ""


if __name__ == "__main__":
    sys.exit(main())
