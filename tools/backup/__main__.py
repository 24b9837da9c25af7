"""Backs up and restores what is not in the tables: `python -m tools.backup make|restore`.

A backup has the streams' state with their checkpoints, the registry, the vault's ciphertext and the topics' settings:
of the running stack (--stack), the demo (--demo), or what GAMELAKE_* variables name. It contains no rows and no
secrets: it can be used only with compose/secrets, or the vault's keys.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from gamelake.command import command_parser, is_confirmed, print_result
from gamelake.contract.games import load_games
from gamelake.program import FAILED, OK, run
from tools.backup.archive import check
from tools.backup.backup_restore import STATE, make, require_empty, restore
from tools.backup.platform import BackupPlatform, of_the_demo, of_the_environment, of_the_stack
from tools.embedded.service import REPOSITORY

_PARTS = ("topics", "registry", "vault", STATE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make or restore a backup."""
    options = _parser().parse_args(arguments)
    with _platform(options) as platform:
        if options.action == "make":
            keep = options.keep or load_games(REPOSITORY / "contracts/games.yaml").maintenance.backups_kept
            print(make(platform, options.to, keep, datetime.now(UTC), _report))
            return OK
        return _restore(platform, options)


def _restore(platform: BackupPlatform, options: argparse.Namespace) -> int:
    contents = check(options.folder)
    require_empty(platform, contents, options.into)
    _report(f"{contents.name}: {', '.join(contents.parts)}; {len(contents.files):,} files, {contents.bytes:,} bytes")
    for part, reason in contents.left_out.items():
        _report(f"{part} is not in the backup: {reason}")
    if options.dry_run:
        return OK
    if not options.yes and not is_confirmed("Stop the streams and the gateway first. Restore it?"):
        _report("nothing was restored (without a terminal: --yes)")
        return FAILED
    return print_result(restore(platform, options.folder, options.into, _report))


@contextmanager
def _platform(options: argparse.Namespace) -> Iterator[BackupPlatform]:
    if options.demo:
        with of_the_demo() as platform:
            yield platform
    else:
        yield of_the_stack() if options.stack else of_the_environment()


def _report(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = command_parser(__doc__)
    of = parser.add_mutually_exclusive_group()
    of.add_argument("--stack", action="store_true", help="of the running stack")
    of.add_argument("--demo", action="store_true", help="of the demo's directory")
    actions = parser.add_subparsers(dest="action", required=True)
    making = actions.add_parser("make", help="make a backup")
    making.add_argument(
        "--to",
        type=Path,
        default=REPOSITORY / "build/backups",
        help="the folder in which the backup's folder is created",
    )
    making.add_argument(
        "--keep", type=int, help="number of backups to keep; default: maintenance.backups_kept of the games contract"
    )
    restoring = actions.add_parser("restore", help="restore a backup")
    restoring.add_argument("folder", type=Path, help="the backup")
    restoring.add_argument(
        "--dry-run", action="store_true", help="check the backup and show its content; change nothing"
    )
    restoring.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    restoring.add_argument(
        "--into", action="append", default=[], choices=_PARTS, metavar="PART",
        help=f"restore what is missing in this part although it is not empty: {', '.join(_PARTS)}",
    )  # fmt: skip
    return parser


if __name__ == "__main__":
    run(lambda: main(sys.argv[1:]))
