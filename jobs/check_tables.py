"""Checks whole tables for a past day: duplicates, volume, freshness, references, columns, and shifts of values.

Prints one JSON document and writes it to gold/table_checks, in place of earlier findings of that day. Exits with 1 if a
check fails. Settings come from GAMELAKE_* variables (docs/settings.md). No Spark, no Kafka.
"""

import argparse
from datetime import UTC, datetime, timedelta

from gamelake.command import command_parser, day, print_result
from gamelake.contract.games import load_games
from gamelake.delta.listing import games_of
from gamelake.layers.comments import EventComments
from gamelake.objects.settings import TableSettings
from gamelake.objects.store import Store
from gamelake.program import FAILED, OK, run
from gamelake.quality.check_findings import CheckStatus, write_findings
from gamelake.quality.table_checks import GameChecks


def main() -> int:
    """Check the tables, and keep the findings."""
    arguments = _arguments()
    settings = TableSettings.from_env()
    store = Store(settings.lakehouse.location)
    games = arguments.games or games_of(store)
    findings = [finding for game in games for finding in GameChecks(store, game, arguments.day).findings()]
    if findings and not arguments.dry_run:
        write_findings(store, arguments.day, findings, EventComments(load_games(settings.games_file), store))
    print_result(findings)
    return FAILED if any(each.status is CheckStatus.FAILED for each in findings) else OK


def _arguments() -> argparse.Namespace:
    parser = command_parser(__doc__)
    yesterday = (datetime.now(UTC) - timedelta(days=1)).date()
    parser.add_argument("games", nargs="*", metavar="GAME", help="such as kart_rumble; default: all that have a table")
    parser.add_argument("--day", type=day, default=yesterday, help="of the events; default: yesterday")
    parser.add_argument("--dry-run", action="store_true", help="keep nothing")
    return parser.parse_args()


if __name__ == "__main__":
    run(main)
