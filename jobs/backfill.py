"""Brings into silver what bronze has and silver lacks: for a game or a table that is new, lost, or was set back.

The records are decoded as the newest code and contract have it; an event that a table has already is left alone. With
--rewrite the rows that are there are decoded once more and take the place of the old ones: for a column that is new.
The streams go on meanwhile. Prints one JSON document. Settings come from GAMELAKE_* variables (docs/settings.md).
"""

import argparse
from collections.abc import Sequence
from datetime import date

import msgspec

from gamelake.model.errors import SettingsError
from gamelake.model.games import load_games
from gamelake.model.naming import BRONZE_EVENTS, SILVER_EVENTS, game_table
from gamelake.program import OK, moment, run
from gamelake.recovery.backfill import Rewriter
from gamelake.recovery.replay.execution import SparkReader
from gamelake.recovery.replay.replayer import ReplayRequest
from gamelake.recovery.replay.selection import Selection
from gamelake.recovery.replay.settings import ReplaySettings
from gamelake.recovery.replay.setup import opened, replayer
from gamelake.recovery.replay.task import DayRange
from gamelake.session import own_session
from gamelake.storage.listing import games_of
from gamelake.storage.store import Store


def main() -> int:
    """Backfill, or say what a backfill would do."""
    arguments = _arguments()
    settings = ReplaySettings.from_env()
    targets = _targets(arguments, settings)
    if arguments.rewrite:
        return _rewritten(settings, targets, arguments)
    bronze = Selection(source=BRONZE_EVENTS, since=arguments.since, until=arguments.until)
    asked = ReplayRequest(bronze, targets)
    with replayer("backfill", settings) as replays:
        return printed(replays.dry_run(asked) if arguments.dry_run else replays.replay(asked))


def _rewritten(settings: ReplaySettings, targets: frozenset[str], arguments: argparse.Namespace) -> int:
    tables, days = settings.tables, DayRange(arguments.from_day, arguments.to_day)
    location = tables.lakehouse.location
    with (
        own_session("backfill", location, tables.spark_jars) as spark,
        opened(settings, SparkReader(spark, location)) as replays,
    ):
        rewriter = Rewriter(replays, spark)
        rewrite = rewriter.dry_run if arguments.dry_run else rewriter.rewrite
        return printed([rewrite(table, days) for table in sorted(targets)])


def _targets(arguments: argparse.Namespace, settings: ReplaySettings) -> frozenset[str]:
    contract = load_games(settings.tables.games_file)
    games = {game.name for game in contract.games} | set(games_of(Store(settings.tables.lakehouse.location)))
    known = {SILVER_EVENTS} | {game_table(game) for game in games}
    if unknown := sorted(set(arguments.tables) - known):
        raise SettingsError(f"'{unknown[0]}' is no silver table; these are: {', '.join(sorted(known))}")
    return frozenset(arguments.tables or known)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="such as silver/kart_rumble_events; default: all")
    add_period(parser)
    parser.add_argument("--rewrite", action="store_true", help="decode the rows anew that the tables have")
    parser.add_argument("--from-day", type=date.fromisoformat, metavar="DAY", help="with --rewrite: of these days")
    parser.add_argument("--to-day", type=date.fromisoformat, metavar="DAY", help="the last of them")
    parser.add_argument("--dry-run", action="store_true", help="say exactly what would be written, and change nothing")
    arguments = parser.parse_args()
    if arguments.rewrite and not arguments.tables:
        parser.error("--rewrite goes with the names of tables")
    if (arguments.from_day or arguments.to_day) and not arguments.rewrite:
        parser.error("--from-day and --to-day go with --rewrite; --since and --until are about when Kafka took it in")
    return arguments


def add_period(parser: argparse.ArgumentParser) -> None:
    """The period in which Kafka took in the records that are meant."""
    parser.add_argument("--since", type=moment, help="records that Kafka took in from then on: 2026-11-22T14:00:00Z")
    parser.add_argument("--until", type=moment, help="and before then")


def printed(result: msgspec.Struct | Sequence[msgspec.Struct]) -> int:
    """Print a result as one JSON document."""
    print(msgspec.json.format(msgspec.json.encode(result)).decode())
    return OK


if __name__ == "__main__":
    run(main)
