"""The rules that rows must hold to, as `quality/rules/*.yaml` says them."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from gamelake.model.errors import ContractError
from gamelake.model.games import SnakeName
from gamelake.model.located_yaml import LocatedDocument, load_located
from gamelake.quality.predicate import parse

Text = Annotated[str, msgspec.Meta(min_length=1, pattern=r"\S")]


class Severity(StrEnum):
    """What becomes of a row that breaks a rule; the weightiest first."""

    FAIL = "fail"
    QUARANTINE = "quarantine"
    DROP = "drop"
    WARN = "warn"


class _RuleSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One rule as it is written."""

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
    """One rule: what must hold of a row, and what becomes of the row if it doesn't.

    Attributes:
        expect: the condition, in canonical form; one that comes to NULL holds.
        columns: those that the condition names, in lower case.
        games: whose rows it judges; empty: all games'.
        place: the file and line that it stands on.
    """

    name: str
    expect: str
    severity: Severity
    owner: str
    why: str
    games: frozenset[str]
    columns: tuple[str, ...]
    place: str

    @property
    def fingerprint(self) -> str:
        """Which version of a rule this is: the same for the same condition and severity, however it is written."""
        return hashlib.sha256(f"{self.severity}\n{self.expect}".encode()).hexdigest()[:12]

    def judges(self, game: str) -> bool:
        """Whether rows of a game are judged by it."""
        return not self.games or game in self.games


@dataclass(frozen=True)
class RuleSet:
    """All rules that are in force together, by severity and name."""

    rules: tuple[QualityRule, ...] = ()

    @cached_property
    def fingerprint(self) -> str:
        """Which set this is; empty if there are no rules."""
        parts = [f"{each.name} {each.fingerprint} {','.join(sorted(each.games))}" for each in self.rules]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12] if parts else ""

    def of(self, game: str) -> tuple[QualityRule, ...]:
        """The rules that judge a game's rows."""
        return tuple(rule for rule in self.rules if rule.judges(game))


NO_RULES = RuleSet()


def load_rules(folder: Path) -> RuleSet:
    """Read all rules of a folder.

    Raises:
        ContractError: a file or a rule says something impossible; names file and line, and what to do.
    """
    if not folder.is_dir():
        raise ContractError(f"{folder}: is no folder; put the rules there, or leave GAMELAKE_RULES out")
    rules: dict[str, QualityRule] = {}
    for path in sorted(folder.glob("*.yaml")):
        for rule in _rules_of(load_located(path)):
            if rule.name in rules:
                raise ContractError(
                    f"{rule.place}: the rule '{rule.name}' stands at {rules[rule.name].place} already; rename one"
                )
            rules[rule.name] = rule
    order = list(Severity)
    return RuleSet(tuple(sorted(rules.values(), key=lambda rule: (order.index(rule.severity), rule.name))))


def _rules_of(document: LocatedDocument) -> list[QualityRule]:
    try:
        file = msgspec.convert(document.value, _RulesFile)
    except msgspec.ValidationError as error:
        raise ContractError(document.describe(error)) from error
    return [_rule(spec, f"$.rules[{place}]", document) for place, spec in enumerate(file.rules)]


def _rule(spec: _RuleSpec, place: str, document: LocatedDocument) -> QualityRule:
    try:
        predicate = parse(spec.expect)
    except ContractError as error:
        line = document.line_of(f"{place}.expect")
        raise ContractError(f"{document.path}:{line}: the rule '{spec.name}' {error}") from error
    return QualityRule(
        name=spec.name,
        expect=predicate.text,
        severity=spec.severity,
        owner=spec.owner,
        why=" ".join(spec.why.split()),
        games=frozenset() if spec.games == "all" else frozenset(spec.games),
        columns=predicate.columns,
        place=f"{document.path}:{document.line_of(place)}",
    )
