"""A game's day: its suites, from what rules and checks of tables have counted to what these come to."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from gamelake.naming import game_table
from gamelake.quality.rules import RuleSet
from gamelake.quality.suites.counting import GAME, ROWS, SAMPLES, UNJUDGED
from gamelake.quality.suites.expected import Expected, Suite, SuiteName, expected_of_finding, expected_of_rule
from gamelake.quality.suites.frames import figures
from gamelake.quality.suites.running import Outcome, Validations
from gamelake.quality.tables.findings import Finding, Status


@dataclass(slots=True)
class Said:
    """What the tasks say of a game beside their counts: its rows, broken rows by rule, and what could not be judged."""

    rows: int = 0
    samples: dict[str, str] = field(default_factory=dict)
    unjudged: Counter[str] = field(default_factory=Counter)


def said_of(counts: DataFrame) -> Mapping[str, Said]:
    """By game what the tasks say; this is where Spark counts."""
    found: dict[str, Said] = {}
    for row in counts.select(GAME, ROWS, SAMPLES, UNJUDGED).collect():
        said = found.setdefault(row[GAME], Said())
        said.rows += row[ROWS]
        said.samples = {**row[SAMPLES], **said.samples}
        said.unjudged.update({name: int(rows) for name, rows in row[UNJUDGED].items()})
    return found


def judge_rules(
    validations: Validations, game: str, rules: RuleSet, counts: DataFrame, said: Said | None
) -> Iterator[Outcome]:
    """Judge a game's rows by the rules; without rows of the day, or where a rule can't judge some, that is said."""
    said = said or Said()
    judged = [rule for rule in rules.of(game) if said.rows and not said.unjudged[rule.name]]
    suite = _suite(SuiteName.RULES, game, [expected_of_rule(rule) for rule in judged])
    for rule in rules.of(game):
        if rule not in judged:
            unjudged = said.unjudged[rule.name]
            detail = f"its columns have other types in {unjudged} rows" if unjudged else "there are no rows of the day"
            yield _skipped(suite, expected_of_rule(rule), detail)
    for outcome in validations.judge(suite, counts.where(counts[GAME] == game)) if judged else ():
        yield outcome.with_detail(_place(said.samples.get(outcome.expected.name, "")))


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
