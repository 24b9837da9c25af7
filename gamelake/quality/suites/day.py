"""A lakehouse's day: which games have suites to run for it, and what these come to."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from pyspark.sql import SparkSession

from gamelake.errors import StoreError
from gamelake.lake.file_entries import live_files
from gamelake.lake.listing import games_of, has_log
from gamelake.lake.store import Store
from gamelake.lake.tables import open_table
from gamelake.naming import SILVER_EVENTS, game_table
from gamelake.quality.checking import EVENT_DATE, CheckedRules
from gamelake.quality.suites.counting import CountBroken, GameTable
from gamelake.quality.suites.frames import counts_of
from gamelake.quality.suites.game_day import Counted, counted_by_game, judge_findings, judge_rules
from gamelake.quality.suites.running import Outcome, Validations
from gamelake.quality.suites.told import in_short
from gamelake.quality.tables.checks import GameChecks

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LakehouseDay:
    """One day of a lakehouse, to be judged by rules and by checks of tables."""

    store: Store
    day: date
    rules: CheckedRules

    def judge(
        self, spark: SparkSession, games: Sequence[str], validations: Validations
    ) -> Iterator[tuple[str, Sequence[Outcome]]]:
        """Judge games one after the other; gives each with what its suites came to."""
        count = CountBroken(self.store.location, self.rules, self._tables(games))
        counted = counted_by_game(counts_of(spark, count), self.rules.rules)
        log.info("%s rows of %d games counted", f"{sum(each.rows for each in counted.values()):,}", len(counted))
        for game in games:
            findings = list(GameChecks(self.store, game, self.day).findings())
            outcomes = [
                *judge_rules(validations, spark, game, self.rules.rules, counted.get(game, Counted())),
                *judge_findings(validations, spark, game, findings),
            ]
            log.info("%s: %s", game, in_short(outcomes))
            yield game, outcomes

    def _tables(self, games: Sequence[str]) -> Mapping[str, GameTable]:
        day, location = self.day.isoformat(), self.store.location
        return {game: GameTable.of(game, open_table(location, game_table(game)), day) for game in games}


def games_to_judge(store: Store, named: Sequence[str]) -> list[str]:
    """The games that are named, or all.

    Raises:
        StoreError: one of them has no table, or there are none.
    """
    there = games_of(store)
    if unknown := sorted(set(named) - set(there)):
        raise StoreError(
            f"there is no table {game_table(unknown[0])} in {store.location.uri}; name a game that has one"
        )
    if not there:
        raise StoreError(f"no game has a table in {store.location.uri} yet: there is nothing to validate")
    return list(named) or there


def newest_day(store: Store, today: date) -> date:
    """The last day that has events, today at the latest: clocks of players may be ahead."""
    files = live_files(open_table(store.location, SILVER_EVENTS)) if has_log(store, SILVER_EVENTS) else []
    days = [date.fromisoformat(text) for file in files if (text := file.partition.get(EVENT_DATE))]
    return max((day for day in days if day <= today), default=today)
