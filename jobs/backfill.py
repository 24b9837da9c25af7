"""Writes rows into silver that bronze has and silver lacks: for a table that is new, lost or was restored.

The records are decoded with the current code and contract; existing events are skipped. With --rewrite, existing rows
are decoded again and replaced: for a column that was added later. The streams continue. Prints one JSON document.
Settings come from GAMELAKE_* variables (docs/settings.md).
"""

import argparse

from gamelake.command import command_parser, day, print_result
from gamelake.contract.games import load_games
from gamelake.delta.listing import games_of
from gamelake.model.errors import SettingsError
from gamelake.model.naming import BRONZE_EVENTS, SILVER_EVENTS, game_table
from gamelake.objects.store import Store
from gamelake.program import moment, run
from gamelake.recovery.backfill import Rewriter
from gamelake.recovery.replay.execution import Selection, SparkReader
from gamelake.recovery.replay.replayer import ReplayRequest, opened, replayer
from gamelake.recovery.replay.settings import ReplaySettings
from gamelake.recovery.replay.task import DayRange
from gamelake.session import own_session


def main() -> int:
    """Backfill, or print the dry run."""
    arguments = _arguments()
    settings = ReplaySettings.from_env()
    targets = _targets(arguments, settings)
    if arguments.rewrite:
        return _rewrite(settings, targets, arguments)
    bronze = Selection(source=BRONZE_EVENTS, since=arguments.since, until=arguments.until)
    request = ReplayRequest(bronze, targets)
    with replayer("backfill", settings) as replays:
        return print_result(replays.dry_run(request) if arguments.dry_run else replays.replay(request))


def _rewrite(settings: ReplaySettings, targets: frozenset[str], arguments: argparse.Namespace) -> int:
    tables, days = settings.tables, DayRange(arguments.from_day, arguments.to_day)
    location = tables.lakehouse.location
    with (
        own_session("backfill", location, tables.spark_jars) as spark,
        opened(settings, SparkReader(spark, location)) as replays,
    ):
        rewriter = Rewriter(replays, spark)
        rewrite = rewriter.dry_run if arguments.dry_run else rewriter.rewrite
        return print_result([rewrite(table, days) for table in sorted(targets)])


def _targets(arguments: argparse.Namespace, settings: ReplaySettings) -> frozenset[str]:
    contract = load_games(settings.tables.games_file)
    games = {game.name for game in contract.games} | set(games_of(Store(settings.tables.lakehouse.location)))
    known = {SILVER_EVENTS} | {game_table(game) for game in games}
    if unknown := sorted(set(arguments.tables) - known):
        raise SettingsError(f"'{unknown[0]}' is not a silver table; these are: {', '.join(sorted(known))}")
    return frozenset(arguments.tables or known)


def _arguments() -> argparse.Namespace:
    parser = command_parser(__doc__)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="such as silver/kart_rumble_events; default: all")
    add_period(parser)
    parser.add_argument("--rewrite", action="store_true", help="decode the existing rows of the tables again")
    parser.add_argument("--from-day", type=day, metavar="DAY", help="with --rewrite: the first day")
    parser.add_argument("--to-day", type=day, metavar="DAY", help="with --rewrite: the last day")
    parser.add_argument("--dry-run", action="store_true", help="print what would be written, and change nothing")
    arguments = parser.parse_args()
    if arguments.rewrite and not arguments.tables:
        parser.error("--rewrite requires the names of tables")
    if (arguments.from_day or arguments.to_day) and not arguments.rewrite:
        parser.error("--from-day and --to-day require --rewrite; --since and --until select by Kafka timestamp")
    return arguments


def add_period(parser: argparse.ArgumentParser) -> None:
    """Add the options that select records by Kafka timestamp."""
    parser.add_argument("--since", type=moment, help="first Kafka timestamp, such as 2026-11-22T14:00:00Z")
    parser.add_argument("--until", type=moment, help="end of the Kafka timestamps, exclusive")


if __name__ == "__main__":
    run(main)
