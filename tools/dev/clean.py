"""Removes the data of `make dev`, after asking: `python -m tools.dev.clean`."""

import sys
from collections.abc import Sequence

from gamelake.command import add_confirmation, command_parser, is_confirmed
from gamelake.model.errors import GamelakeError
from tools.dev.directory import remove
from tools.dev.options import add_directory

OK, FAILED = 0, 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Remove the directory; 1 if that was not confirmed, or not possible."""
    parser = command_parser(__doc__)
    add_directory(parser)
    add_confirmation(parser, "only show what would be removed")
    options = parser.parse_args(arguments)

    try:
        is_done = remove(
            options.directory.resolve(),
            is_confirmed=lambda: options.yes or is_confirmed("Remove it?"),
            dry_run=options.dry_run,
        )
    except GamelakeError as error:
        print(f"gamelake: {error}", file=sys.stderr)
        return FAILED
    return OK if is_done else FAILED


if __name__ == "__main__":
    sys.exit(main())
