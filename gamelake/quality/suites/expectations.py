"""What a suite expects: figures by name, each with the bounds that it must lie within."""

from dataclasses import dataclass
from enum import StrEnum

from gamelake.quality.check_findings import Bounds, TableFinding
from gamelake.quality.rules import QualityRule, Severity


class Weight(StrEnum):
    """How much it weighs that an expectation fails.

    What is critical may hold gold back, what is a warning makes the run fail too; the rest is told and counted.
    """

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


class SuiteName(StrEnum):
    """What is expected of what: of rows, of a table, of all hops that records take."""

    RULES = "rules"
    TABLES = "tables"
    HOPS = "hops"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """One figure that a suite judges; it is a column of the batch, whose sum must lie within the bounds.

    Attributes:
        expect: what must hold, in words or as SQL.
        fingerprint: which version of it; empty if there is but one.
    """

    name: str
    bounds: Bounds
    weight: Weight
    expect: str
    owner: str = ""
    why: str = ""
    fingerprint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationSuite:
    """What is expected of one table on one day; `game` is empty where it is of all games."""

    name: SuiteName
    game: str
    table: str
    expected: tuple[Expectation, ...]

    @property
    def title(self) -> str:
        """The name under which Data Docs have it."""
        return f"{self.game or 'all games'} {self.name.value}"


_NONE = Bounds(0, 0)
# What a good day may differ in from the days before: worth a look, but no reason to keep its figures back.
_SUSPICIOUS = ("volume", "freshness", "columns_are_the_same", "hours_are_there", "is_distributed_as_before")


def expectation_of_rule(rule: QualityRule) -> Expectation:
    """No row breaks it; rows of silver that break a rule which keeps rows out of silver came past it."""
    return Expectation(
        name=rule.name,
        bounds=_NONE,
        weight=Weight.INFO if rule.severity is Severity.WARN else Weight.CRITICAL,
        expect=rule.expect,
        owner=rule.owner,
        why=rule.why,
        fingerprint=rule.fingerprint,
    )


def expectation_of_finding(finding: TableFinding) -> Expectation:
    """What a check of a table compared; nothing, where it had nothing to compare with."""
    return Expectation(
        name=finding.check,
        bounds=finding.bounds or Bounds(None, None),
        weight=Weight.WARNING if finding.check.endswith(_SUSPICIOUS) else Weight.CRITICAL,
        expect=finding.check.replace("_", " "),
    )
