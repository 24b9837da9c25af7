"""Decodes dead letters or quarantined rows again.

Run it after a schema, the games contract, a rule or the code was fixed. Records that can be decoded now and break no
current rule are written to their tables once and marked in dead_letters/replayed or quarantine/replayed; the others
stay. The streams continue. Prints one JSON document. Settings come from GAMELAKE_* variables (docs/settings.md).
"""

import argparse

from gamelake.command import command_parser, one_of, print_result
from gamelake.delta.listing import has_log
from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.model.naming import DEAD_LETTERS, QUARANTINE
from gamelake.objects.store import Store
from gamelake.program import run
from gamelake.recovery.replay.execution import Selection
from gamelake.recovery.replay.replayer import Replayed, ReplayRequest, replayer
from gamelake.recovery.replay.settings import ReplaySettings
from jobs.backfill import add_period

_SOURCES = {"dead_letters": DEAD_LETTERS, "quarantine": QUARANTINE}


def main() -> int:
    """Replay, or print the dry run."""
    arguments = _arguments()
    settings = ReplaySettings.from_env()
    source = _SOURCES[arguments.source]
    if not has_log(Store(settings.tables.lakehouse.location), source):
        return print_result(Replayed(source=source, records=0, rows={}, still_dead={}))
    letters = Selection(
        source=source,
        reasons=tuple(arguments.reason),
        rules=tuple(arguments.rule),
        since=arguments.since,
        until=arguments.until,
    )
    with replayer("replay", settings) as replays:
        return print_result(
            replays.dry_run(ReplayRequest(letters)) if arguments.dry_run else replays.replay(ReplayRequest(letters))
        )


def _arguments() -> argparse.Namespace:
    parser = command_parser(__doc__)
    parser.add_argument("--source", type=one_of(_SOURCES), default="dead_letters", help="default: %(default)s")
    parser.add_argument(
        "--rule",
        action="append",
        default=[],
        metavar="NAME",
        help="with --source quarantine: only rows that this rule quarantined; may be given several times",
    )
    parser.add_argument(
        "--reason",
        action="append",
        default=[],
        type=one_of(DeadLetterReason),
        help="only dead letters with this reason; may be given several times",
    )
    add_period(parser)
    parser.add_argument("--dry-run", action="store_true", help="print what would be written, and change nothing")
    arguments = parser.parse_args()
    if arguments.rule and arguments.source != "quarantine":
        parser.error("--rule requires --source quarantine")
    if arguments.reason and arguments.source != "dead_letters":
        parser.error("--reason requires --source dead_letters; quarantined rows have a --rule")
    return arguments


if __name__ == "__main__":
    run(main)
