"""Decodes again what was set aside: dead letters, or what stands in the quarantine.

For after a schema, the games contract, a rule or the code was put right. What has become readable, and breaks no rule
as they are now, lands in its tables once and is marked in dead_letters/replayed or quarantine/replayed; the others
stay. The streams go on meanwhile. Prints one JSON document. Settings come from GAMELAKE_* variables (docs/settings.md).
"""

import argparse

from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.model.naming import DEAD_LETTERS, QUARANTINE
from gamelake.program import run
from gamelake.recovery.replay.replayer import Replayed, ReplayRequest
from gamelake.recovery.replay.selection import Selection
from gamelake.recovery.replay.settings import ReplaySettings
from gamelake.recovery.replay.setup import replayer
from gamelake.storage.listing import has_log
from gamelake.storage.store import Store
from jobs.backfill import add_period, printed

_SOURCES = {"dead_letters": DEAD_LETTERS, "quarantine": QUARANTINE}


def main() -> int:
    """Replay, or say what a replay would do."""
    arguments = _arguments()
    settings = ReplaySettings.from_env()
    source = _SOURCES[arguments.source]
    if not has_log(Store(settings.tables.lakehouse.location), source):
        return printed(Replayed(source=source, records=0, rows={}, still_dead={}))
    letters = Selection(
        source=source,
        reasons=tuple(arguments.reason),
        rules=tuple(arguments.rule),
        since=arguments.since,
        until=arguments.until,
    )
    with replayer("replay", settings) as replays:
        return printed(
            replays.dry_run(ReplayRequest(letters)) if arguments.dry_run else replays.replay(ReplayRequest(letters))
        )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", choices=list(_SOURCES), default="dead_letters", help="default: %(default)s")
    parser.add_argument(
        "--rule",
        action="append",
        default=[],
        metavar="NAME",
        help="with --source quarantine: only rows that this rule set aside; may be given several times",
    )
    parser.add_argument(
        "--reason",
        action="append",
        default=[],
        choices=[each.value for each in DeadLetterReason],
        help="only letters with this reason; may be given several times",
    )
    add_period(parser)
    parser.add_argument("--dry-run", action="store_true", help="say exactly what would land, and change nothing")
    arguments = parser.parse_args()
    if arguments.rule and arguments.source != "quarantine":
        parser.error("--rule goes with --source quarantine")
    if arguments.reason and arguments.source != "dead_letters":
        parser.error("--reason is of dead letters; rows of the quarantine have a --rule")
    return arguments


if __name__ == "__main__":
    run(main)
