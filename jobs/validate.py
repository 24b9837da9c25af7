"""Validates a past day: rows by the rules, tables by their checks, and the hops of records between tables.

Great Expectations validates on Spark; the results go to gold/validations and to Data Docs. With --hold a game's gold
tables are not updated while a day has critical expectations about its silver that failed, until they pass. Exits with
1 if an expectation failed with the severity `critical` or `warning` (not with --exit-zero). Settings come from
GAMELAKE_* variables (docs/settings.md); GAMELAKE_RULES is the folder of the rules.
"""

import argparse
import socket
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from pyspark.sql import SparkSession

from gamelake.command import command_parser
from gamelake.command import day as parsed_day
from gamelake.contract.games import load_games
from gamelake.layers.comments import EventComments
from gamelake.ledger.holds import release
from gamelake.model.errors import StoreError
from gamelake.model.logs import event_logger
from gamelake.model.naming import game_table
from gamelake.objects.store import Store
from gamelake.observability.hop_accounts import accounts, batches_since
from gamelake.program import FAILED, OK, moment, run
from gamelake.quality.checking import NO_CHECKED_RULES, CheckedRules
from gamelake.quality.rules import load_rules
from gamelake.quality.settings import ValidationSettings
from gamelake.quality.suites.day import LakehouseDay, games_to_validate, newest_day
from gamelake.quality.suites.holds import GoldHolds
from gamelake.quality.suites.hops import Hop, TableHops, hops_of_totals, validate_hops
from gamelake.quality.suites.hour_hops import HourHops
from gamelake.quality.suites.results import build_docs, write_results
from gamelake.quality.suites.summary import one_line_summary, summary_table
from gamelake.quality.suites.validations import ExpectationResult, ValidationRun
from gamelake.session import own_session
from gamelake.streaming.rules import RulesLoader

log = event_logger(__name__)

Settle = Callable[[str, Sequence[ExpectationResult]], None]
_DOCS = Path("build/data-docs")
_NEWEST = "newest"


def main() -> int:
    """Validate, keep the results, and print them."""
    arguments = _arguments()
    settings = ValidationSettings.from_env()
    store = Store(settings.tables.lakehouse.location)
    now = datetime.now(UTC)
    if arguments.release:
        return _release(store, arguments.games, _day(store, arguments.day, now.date()) if arguments.day else None)
    games, day = games_to_validate(store, arguments.games), _day(store, arguments.day, now.date())
    lakehouse_day = LakehouseDay(store, day, _rules(settings, store))
    settle = _settler(store, arguments, day, now)
    outcomes: list[ExpectationResult] = []
    with own_session("validate", store.location, settings.tables.spark_jars) as spark:
        validations = ValidationRun(day)
        for game, found in lakehouse_day.validate(spark, games, validations):
            settle(game, found)
            outcomes += found
        if not arguments.games:
            outcomes += validate_hops(validations, spark, list(_hops(store, spark, day)))
    print(summary_table(outcomes))
    if not arguments.dry_run:
        write_results(store, day, now, outcomes, EventComments(load_games(settings.tables.games_file), store))
        print(f"Data Docs: {build_docs(validations, arguments.docs)}")
    print(f"{day}: {one_line_summary(outcomes)}")
    return FAILED if not arguments.exit_zero and any(each.is_failure for each in outcomes) else OK


def _hops(store: Store, spark: SparkSession, day: date) -> Iterator[Hop]:
    """All hops, the cheapest to compare first."""
    yield from hops_of_totals(accounts(store))
    yield from TableHops(store, spark, day).hops(batches_since(store, day))
    yield from HourHops(store, spark, day).hops()


def _rules(settings: ValidationSettings, store: Store) -> CheckedRules:
    if settings.rules is None:
        log.warning("rules_not_set", action="no rules are evaluated; set GAMELAKE_RULES")
        return NO_CHECKED_RULES
    contract = load_games(settings.tables.games_file)
    loader = RulesLoader(settings.rules, settings.tables.games_file, contract, store, dict)
    return loader.check(load_rules(settings.rules))


def _settler(store: Store, arguments: argparse.Namespace, day: date, now: datetime) -> Settle:
    """The update of holds after the validation of a game."""
    if arguments.dry_run or not arguments.hold:
        return lambda game, outcomes: None
    by = f"the validation on {socket.gethostname()}"
    return GoldHolds(store=store, day=day, now=now, by=by, until=arguments.until).settle


def _release(store: Store, games: Sequence[str], day: date | None) -> int:
    """Release the gold of games, or what is held of it for one day, whatever the last results.

    Raises:
        StoreError: no game is given.
    """
    if not games:
        raise StoreError("give the games whose gold to release")
    for game in games:
        released = release(store, game_table(game), day)
        print(f"{game}: its gold is released ({released} days)" if released else f"{game}: was not held back")
    return OK


def _day(store: Store, wanted: date | str | None, today: date) -> date:
    if isinstance(wanted, str):
        return newest_day(store, today)
    return wanted or today - timedelta(days=1)


def day_or_newest(text: str) -> date | str:
    """Parse the value of `--day`: a day, or 'newest'."""
    return text if text == _NEWEST else parsed_day(text)


def _arguments() -> argparse.Namespace:
    parser = command_parser(__doc__)
    add = parser.add_argument
    add("games", nargs="*", metavar="GAME", help="such as kart_rumble; default: all that have a table")
    add("--day", type=day_or_newest, help="of the events, or 'newest': the last day with events; default: yesterday")
    add("--docs", type=Path, default=_DOCS, metavar="DIR", help="for Data Docs of this run; default: %(default)s")
    add("--hold", action="store_true", help="hold gold back after a critical failure, release it otherwise")
    add("--until", type=moment, metavar="TIME", help="when a hold expires; default: never")
    add("--release", action="store_true", help="validate nothing, release the gold of the given games, or of one --day")
    add("--exit-zero", action="store_true", help="exit with 0 if the day was validated, whatever the results")
    add("--dry-run", action="store_true", help="validate and print, but keep nothing and hold nothing back")
    return parser.parse_args()


if __name__ == "__main__":
    run(main)
