"""Backs up what tables and their versions don't hold, and puts it back: `python -m tools.backup make|restore`.

Saved are the streams' state with their checkpoints, the registry, the vault's ciphertext and the topics' settings: of
the running stack (--stack), the demo (--demo), or what GAMELAKE_* variables name. Secrets stay with their owner:
without compose/secrets, or the vault's keys, nobody can use a backup. Rows are in none.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from gamelake.model.games import load_games
from gamelake.program import FAILED, OK, run
from tools.backup.archive import check
from tools.backup.backup_restore import STATE, make, put_back, require_empty
from tools.backup.platform import Platform, of_the_demo, of_the_environment, of_the_stack
from tools.embedded.service import REPOSITORY

_PARTS = ("topics", "registry", "vault", STATE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make a backup, or put one back."""
    options = _parser().parse_args(arguments)
    with _platform(options) as platform:
        if options.action == "make":
            keep = options.keep or load_games(REPOSITORY / "contracts/games.yaml").maintenance.backups_kept
            print(make(platform, options.to, keep, datetime.now(UTC), _tell))
            return OK
        return _put_back(platform, options)


def _put_back(platform: Platform, options: argparse.Namespace) -> int:
    contents = check(options.folder)
    require_empty(platform, contents, options.into)
    _tell(f"{contents.name}: {', '.join(contents.parts)}; {len(contents.files):,} files, {contents.bytes:,} bytes")
    for part, reason in contents.left_out.items():
        _tell(f"{part} is not in it: {reason}")
    if options.dry_run:
        return OK
    if not options.yes and not _confirmed():
        return FAILED
    print(msgspec.json.format(msgspec.json.encode(put_back(platform, options.folder, options.into, _tell))).decode())
    return OK


def _confirmed() -> bool:
    if not sys.stdin.isatty():
        _tell("nobody is there to ask: say --yes")
        return False
    return input("Stop the streams and the gateway first. Type yes to put it back: ").strip() == "yes"


@contextmanager
def _platform(options: argparse.Namespace) -> Iterator[Platform]:
    if options.demo:
        with of_the_demo() as platform:
            yield platform
    else:
        yield of_the_stack() if options.stack else of_the_environment()


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.backup", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    of = parser.add_mutually_exclusive_group()
    of.add_argument("--stack", action="store_true", help="of the running stack")
    of.add_argument("--demo", action="store_true", help="of what make demo has left")
    actions = parser.add_subparsers(dest="action", required=True)
    making = actions.add_parser("make", help="make one")
    making.add_argument(
        "--to", type=Path, default=REPOSITORY / "build/backups", help="the folder under which it gets one of its own"
    )
    making.add_argument(
        "--keep", type=int, help="so many stay; default: maintenance.backups_kept of the games contract"
    )
    restoring = actions.add_parser("restore", help="put one back")
    restoring.add_argument("folder", type=Path, help="the backup")
    restoring.add_argument("--dry-run", action="store_true", help="check it and say what it holds, change nothing")
    restoring.add_argument("--yes", action="store_true", help="don't ask")
    restoring.add_argument(
        "--into", action="append", default=[], choices=_PARTS, metavar="PART",
        help=f"put back what this part lacks although it has something: {', '.join(_PARTS)}",
    )  # fmt: skip
    return parser


if __name__ == "__main__":
    run(lambda: main(sys.argv[1:]))
