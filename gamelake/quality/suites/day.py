"""Validates a day of a lakehouse: runs the suites of each game and gives their results."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from pyspark.sql import Row, SparkSession

from gamelake.delta.listing import games_of, has_log
from gamelake.delta.log.codec import live_files
from gamelake.delta.tables import open_table
from gamelake.model.errors import StoreError
from gamelake.model.logs import event_logger
from gamelake.model.naming import SILVER_EVENTS, game_table
from gamelake.objects.store import Store
from gamelake.quality.check_findings import CheckStatus, TableFinding, checks_failed
from gamelake.quality.checking import EVENT_DATE, CheckedRules
from gamelake.quality.rules import RuleSet
from gamelake.quality.suites.counting import (
    GAME,
    ROWS,
    SAMPLES,
    UNJUDGED,
    UNREAD,
    CountBrokenRows,
    GameDayFiles,
    counts_of,
    figures,
)
from gamelake.quality.suites.expectations import (
    Expectation,
    SuiteName,
    ValidationSuite,
    expectation_of_finding,
    expectation_of_rule,
)
from gamelake.quality.suites.summary import one_line_summary
from gamelake.quality.suites.validations import ExpectationResult, ValidationRun
from gamelake.quality.table_checks import GameChecks

log = event_logger(__name__)


@dataclass(slots=True)
class GameRowCounts:
    """The counts of a game: its rows, and by rule name those that break it and those that it can't be evaluated on.

    `unread` is the error of a file that can't be read, empty if all were.
    """

    rows: int = 0
    broken: Counter[str] = field(default_factory=Counter)
    samples: dict[str, str] = field(default_factory=dict)
    unjudged: Counter[str] = field(default_factory=Counter)
    unread: str = ""


def counted_by_game(counts: Sequence[Row], rules: RuleSet) -> Mapping[str, GameRowCounts]:
    """Return the counts by game, summed over files."""
    found: dict[str, GameRowCounts] = {}
    for row in counts:
        counted = found.setdefault(row[GAME], GameRowCounts())
        counted.rows += row[ROWS]
        counted.broken.update({rule.name: row[rule.name] or 0 for rule in rules.rules})
        counted.samples = {**row[SAMPLES], **counted.samples}
        counted.unjudged.update({name: int(rows) for name, rows in row[UNJUDGED].items()})
        counted.unread = row[UNREAD] or counted.unread
    return found


def validate_rules(
    validations: ValidationRun, spark: SparkSession, game: str, rules: RuleSet, counted: GameRowCounts
) -> Iterator[ExpectationResult]:
    """Validate the rule counts of a game; a rule is skipped if the day has no rows or the rule can't be evaluated."""
    judged = [rule for rule in rules.of(game) if counted.rows and not counted.unjudged[rule.name]]
    suite = _suite(SuiteName.RULES, game, [expectation_of_rule(rule) for rule in judged])
    for rule in rules.of(game):
        if rule not in judged:
            unjudged = counted.unjudged[rule.name]
            detail = f"its columns have other types in {unjudged} rows" if unjudged else "there are no rows of the day"
            yield _skipped(suite, expectation_of_rule(rule), detail)
    batch = figures(spark, {rule.name: counted.broken[rule.name] for rule in judged}) if judged else None
    for outcome in validations.validate(suite, batch) if batch is not None else ():
        yield outcome.with_detail(_place(counted.samples.get(outcome.expected.name, "")))


def validate_findings(
    validations: ValidationRun, spark: SparkSession, game: str, findings: Sequence[TableFinding]
) -> Iterator[ExpectationResult]:
    """Validate the findings of a game's table checks; a check without enough history is skipped."""
    judged = {each.check: each for each in findings if each.bounds is not None and each.observed is not None}
    suite = _suite(SuiteName.TABLES, game, [expectation_of_finding(each) for each in judged.values()])
    for each in findings:
        if each.check not in judged:
            detail = each.detail or "there is not enough history to compare with"
            yield _skipped(suite, expectation_of_finding(each), detail)
    batch = figures(spark, {each.check: each.observed or 0.0 for each in judged.values()}) if judged else None
    for outcome in validations.validate(suite, batch) if batch is not None else ():
        yield outcome.with_detail(judged[outcome.expected.name].detail)


def _suite(name: SuiteName, game: str, expected: Sequence[Expectation]) -> ValidationSuite:
    return ValidationSuite(name=name, game=game, table=game_table(game), expected=tuple(expected))


def _skipped(suite: ValidationSuite, expected: Expectation, detail: str) -> ExpectationResult:
    return ExpectationResult(suite=suite, expected=expected, status=CheckStatus.SKIPPED, detail=detail)


def _place(samples: str) -> str:
    return f"such as {samples} (partition:offset)" if samples else ""


@dataclass(frozen=True, slots=True)
class LakehouseDay:
    """A day of a lakehouse, with the rules for its validation."""

    store: Store
    day: date
    rules: CheckedRules

    def validate(
        self, spark: SparkSession, games: Sequence[str], validations: ValidationRun
    ) -> Iterator[tuple[str, Sequence[ExpectationResult]]]:
        """Validate one game after the other, and yield each with its results.

        A game whose table can't be read fails `checks_ran`, and no other game.
        """
        tables, unread = self._tables(games)
        count = CountBrokenRows(self.store.location, self.rules, tables)
        counted = counted_by_game(counts_of(spark, count), self.rules.rules)
        unread |= {game: each.unread for game, each in counted.items() if each.unread}
        log.info("day_counted", rows=sum(each.rows for each in counted.values()), games=len(counted))
        for game in games:
            error = unread.get(game)
            findings = (
                [checks_failed(game, error)] if error else list(GameChecks(self.store, game, self.day).findings())
            )
            outcomes = [
                *validate_rules(validations, spark, game, self.rules.rules, counted.get(game, GameRowCounts())),
                *validate_findings(validations, spark, game, findings),
            ]
            log.info("game_validated", game=game, summary=one_line_summary(outcomes))
            yield game, outcomes

    def _tables(self, games: Sequence[str]) -> tuple[Mapping[str, GameDayFiles], dict[str, str]]:
        """The tables of the games, and the errors of those that can't be opened."""
        day, location = self.day.isoformat(), self.store.location
        opened, failed = {}, {}
        for game in games:
            try:
                opened[game] = GameDayFiles.of(game, open_table(location, game_table(game)), day)
            except Exception as error:  # whatever is wrong with a game's table is that game's failure
                failed[game] = f"{type(error).__name__}: {error}"
        return opened, failed


def games_to_validate(store: Store, named: Sequence[str]) -> list[str]:
    """Return the named games, or all if none is named.

    Raises:
        StoreError: a named game has no table, or there are no games.
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
    """Return the last day with events, not after today: clocks of players may be ahead."""
    files = (
        live_files(open_table(store.location, SILVER_EVENTS), with_deleted_rows=True)
        if has_log(store, SILVER_EVENTS)
        else []
    )
    days = [date.fromisoformat(text) for file in files if (text := file.partition.get(EVENT_DATE))]
    return max((day for day in days if day <= today), default=today)
