"""What an examination of a lakehouse found: one line for each need, with the remedy where it is not met."""

from collections.abc import Iterable
from enum import StrEnum

import msgspec


class Verdict(StrEnum):
    """Whether a need is met; also the first word of its line."""

    PASS = "PASS"  # noqa: S105 # no password
    WARN = "WARN"
    FAIL = "FAIL"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One need, what was found of it, and the remedy (empty where none is wanted)."""

    verdict: Verdict
    need: str
    found: str
    remedy: str = ""

    def __str__(self) -> str:
        """The line that a person reads."""
        return f"{self.verdict} {self.need}: {self.found}{'; ' if self.remedy else ''}{self.remedy}"


def passed(need: str, found: str) -> Finding:
    """A need that is met."""
    return Finding(verdict=Verdict.PASS, need=need, found=found)


def warned(need: str, found: str, remedy: str) -> Finding:
    """A need that is met narrowly, or of which nothing can be said."""
    return Finding(verdict=Verdict.WARN, need=need, found=found, remedy=remedy)


def failed(need: str, found: str, remedy: str) -> Finding:
    """A need that is not met."""
    return Finding(verdict=Verdict.FAIL, need=need, found=found, remedy=remedy)


def any_failed(findings: Iterable[Finding]) -> bool:
    """Whether one of them is more than a warning."""
    return any(finding.verdict is Verdict.FAIL for finding in findings)
