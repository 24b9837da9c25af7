"""The expectations of a suite: values by name, each with its valid range."""

from dataclasses import dataclass
from enum import StrEnum

from gamelake.quality.check_findings import CHECKS_RAN, Bounds, TableFinding
from gamelake.quality.rules import QualityRule, Severity

_NONE = Bounds(0, 0)
# A correct day may differ from the days before in these, and a table that can't be read says nothing of its rows: a
# reason to investigate, but not to hold gold back.
_SUSPICIOUS = (CHECKS_RAN, "volume", "freshness", "columns_are_the_same", "hours_are_there", "is_distributed_as_before")


class Weight(StrEnum):
    """The severity of a failed expectation.

    A critical one can hold gold back and fails the run, a warning fails the run, the rest is reported only.
    """

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


class SuiteName(StrEnum):
    """The kind of a suite: the rules on rows, the checks of a table, or the hops of records between tables."""

    RULES = "rules"
    TABLES = "tables"
    HOPS = "hops"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """An expectation about one column of a batch: its sum must lie within the bounds.

    Attributes:
        expect: the condition as text or SQL.
        fingerprint: its version; empty if it has only one.
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
    """The expectations about one table on one day; `game` is empty for all games."""

    name: SuiteName
    game: str
    table: str
    expected: tuple[Expectation, ...]

    @property
    def title(self) -> str:
        """The name of the suite in Data Docs."""
        return f"{self.game or 'all games'} {self.name.value}"


def expectation_of_rule(rule: QualityRule) -> Expectation:
    """Expect that no row of silver breaks the rule; critical if the rule keeps such rows out of silver."""
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
    """Expect that the value of a table check lies within its bounds; any value if the check has no bounds."""
    return Expectation(
        name=finding.check,
        bounds=finding.bounds or Bounds(None, None),
        weight=Weight.WARNING if finding.check.endswith(_SUSPICIOUS) else Weight.CRITICAL,
        expect=finding.check.replace("_", " "),
    )
