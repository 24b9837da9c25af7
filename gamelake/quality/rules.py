"""Loads the rules of `quality/rules/*.yaml`."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from gamelake.contract.games import SnakeName
from gamelake.contract.located_yaml import LocatedDocument, declaration, load_declaration, refused_by_file
from gamelake.model.errors import ContractError
from gamelake.quality.predicate import parse

Text = Annotated[str, msgspec.Meta(min_length=1, pattern=r"\S")]


class Severity(StrEnum):
    """The consequence for a row that breaks a rule; the most severe first."""

    FAIL = "fail"
    QUARANTINE = "quarantine"
    DROP = "drop"
    WARN = "warn"


class _RuleSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule in a file."""

    name: SnakeName
    expect: Text
    severity: Severity
    owner: Text
    why: Text
    games: Literal["all"] | Annotated[tuple[SnakeName, ...], msgspec.Meta(min_length=1)] = "all"


class _RulesFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file of rules."""

    rules: Annotated[tuple[_RuleSpec, ...], msgspec.Meta(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityRule:
    """A condition that rows must satisfy, and what happens to a row that does not.

    Attributes:
        expect: the condition as canonical SQL; NULL counts as satisfied.
        columns: the columns of the condition, in lower case.
        games: the games that it applies to; empty for all.
        location: its file and line.
    """

    name: str
    expect: str
    severity: Severity
    owner: str
    why: str
    games: frozenset[str]
    columns: tuple[str, ...]
    location: str

    @property
    def fingerprint(self) -> str:
        """The version of the rule: a hash of its severity and canonical condition."""
        return hashlib.sha256(f"{self.severity}\n{self.expect}".encode()).hexdigest()[:12]

    def applies_to(self, game: str) -> bool:
        """Return True if the rule applies to rows of a game."""
        return not self.games or game in self.games


@dataclass(frozen=True)
class RuleSet:
    """All rules of a lakehouse, sorted by severity, then name."""

    rules: tuple[QualityRule, ...] = ()

    @cached_property
    def fingerprint(self) -> str:
        """The version of the set; empty if there are no rules."""
        parts = [f"{each.name} {each.fingerprint} {','.join(sorted(each.games))}" for each in self.rules]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12] if parts else ""

    def of(self, game: str) -> tuple[QualityRule, ...]:
        """Return the rules that apply to a game."""
        return tuple(rule for rule in self.rules if rule.applies_to(game))


NO_RULES = RuleSet()


@declaration
def load_rules(folder: Path) -> RuleSet:
    """Read all rules of a folder.

    Raises:
        ContractError: a file or a rule is invalid; the message has file, line and remedy.
    """
    if not folder.is_dir():
        raise ContractError(f"{folder}: is not a folder; put the rules there, or unset GAMELAKE_RULES")
    rules: dict[str, QualityRule] = {}
    for path in sorted(folder.glob("*.yaml")):
        for rule in _rules_of(path):
            if rule.name in rules:
                other = rules[rule.name].location
                raise ContractError(
                    f"{rule.location}: the rule '{rule.name}' is already defined at {other}; rename one"
                )
            rules[rule.name] = rule
    order = list(Severity)
    return RuleSet(tuple(sorted(rules.values(), key=lambda rule: (order.index(rule.severity), rule.name))))


@declaration
def _rules_of(path: Path) -> list[QualityRule]:
    file, document = load_declaration(path, _RulesFile)
    return [_rule(spec, f"$.rules[{place}]", document) for place, spec in enumerate(file.rules)]


def _rule(spec: _RuleSpec, place: str, document: LocatedDocument) -> QualityRule:
    line = document.line_of(f"{place}.expect")
    try:
        with refused_by_file(document.path, line):
            predicate = parse(spec.expect)
    except ContractError as error:
        raise ContractError(f"{document.path}:{line}: the rule '{spec.name}' {error}") from error
    return QualityRule(
        name=spec.name,
        expect=predicate.text,
        severity=spec.severity,
        owner=spec.owner,
        why=" ".join(spec.why.split()),
        games=frozenset() if spec.games == "all" else frozenset(spec.games),
        columns=predicate.columns,
        location=f"{document.path}:{document.line_of(place)}",
    )
