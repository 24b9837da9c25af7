"""A game's day: its suites, from what rules and checks of tables have counted to what these come to."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Row, SparkSession

from gamelake.naming import game_table
from gamelake.quality.rules import RuleSet
from gamelake.quality.suites.counting import GAME, ROWS, SAMPLES, UNJUDGED
from gamelake.quality.suites.expected import Expected, Suite, SuiteName, expected_of_finding, expected_of_rule
from gamelake.quality.suites.frames import figures
from gamelake.quality.suites.running import Outcome, Validations
from gamelake.quality.tables.findings import Finding, Status


@dataclass(slots=True)
class Counted:
    """What the tasks have counted of a game: its rows, and by rule those that break it, and those without a verdict."""

    rows: int = 0
    broken: Counter[str] = field(default_factory=Counter)
    samples: dict[str, str] = field(default_factory=dict)
    unjudged: Counter[str] = field(default_factory=Counter)


def counted_by_game(counts: Sequence[Row], rules: RuleSet) -> Mapping[str, Counted]:
    """The counts of all files, by game."""
    found: dict[str, Counted] = {}
    for row in counts:
        counted = found.setdefault(row[GAME], Counted())
        counted.rows += row[ROWS]
        counted.broken.update({rule.name: row[rule.name] or 0 for rule in rules.rules})
        counted.samples = {**row[SAMPLES], **counted.samples}
        counted.unjudged.update({name: int(rows) for name, rows in row[UNJUDGED].items()})
    return found


def judge_rules(
    validations: Validations, spark: SparkSession, game: str, rules: RuleSet, counted: Counted
) -> Iterator[Outcome]:
    """Judge a game's rows by the rules; without rows of the day, or where a rule can't judge some, that is said."""
    judged = [rule for rule in rules.of(game) if counted.rows and not counted.unjudged[rule.name]]
    suite = _suite(SuiteName.RULES, game, [expected_of_rule(rule) for rule in judged])
    for rule in rules.of(game):
        if rule not in judged:
            unjudged = counted.unjudged[rule.name]
            detail = f"its columns have other types in {unjudged} rows" if unjudged else "there are no rows of the day"
            yield _skipped(suite, expected_of_rule(rule), detail)
    batch = figures(spark, {rule.name: counted.broken[rule.name] for rule in judged}) if judged else None
    for outcome in validations.judge(suite, batch) if batch is not None else ():
        yield outcome.with_detail(_place(counted.samples.get(outcome.expected.name, "")))


def judge_findings(
    validations: Validations, spark: SparkSession, game: str, findings: Sequence[Finding]
) -> Iterator[Outcome]:
    """Judge what checks of a game's table have counted; one without enough to compare with is skipped."""
    judged = {each.check: each for each in findings if each.bounds is not None and each.observed is not None}
    suite = _suite(SuiteName.TABLES, game, [expected_of_finding(each) for each in judged.values()])
    for each in findings:
        if each.check not in judged:
            yield _skipped(suite, expected_of_finding(each), "there is too little to compare with")
    batch = figures(spark, {each.check: each.observed or 0.0 for each in judged.values()}) if judged else None
    for outcome in validations.judge(suite, batch) if batch is not None else ():
        yield outcome.with_detail(judged[outcome.expected.name].detail)


def _suite(name: SuiteName, game: str, expected: Sequence[Expected]) -> Suite:
    return Suite(name=name, game=game, table=game_table(game), expected=tuple(expected))


def _skipped(suite: Suite, expected: Expected, detail: str) -> Outcome:
    return Outcome(suite=suite, expected=expected, status=Status.SKIPPED, detail=detail)


def _place(samples: str) -> str:
    return f"such as {samples} (partition:offset)" if samples else ""
