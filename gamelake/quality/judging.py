"""What becomes of rows by the rules: which go on, which are quarantined or dropped, and how many broke which rule."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gamelake.model.errors import BrokenRuleError
from gamelake.model.naming import game_of
from gamelake.quality.checking import CheckedRules
from gamelake.quality.evaluation import BrokenRule, Evaluator, Flags
from gamelake.quality.rules import QualityRule, Severity
from gamelake.storage.manifests import Judged, RuleCount

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class QuarantinedRows:
    """Rows that are quarantined: each row, its record's place in the batch, its game, and which rules it breaks.

    A row breaks the rules `sets[which]`, the weightiest of them first; the arrays are parallel to the rows.
    """

    rows: pa.RecordBatch
    records: Ints
    games: pa.Array
    sets: list[tuple[QualityRule, ...]]
    which: Ints


class Judge(Protocol):
    """Tells which rows don't go on."""

    def set_aside(self, rows: pa.RecordBatch, tables: Sequence[str], codes: Ints, records: Ints) -> Flags:
        """Which rows don't become rows of silver; a row is for `tables[code]`, for none if its code is negative."""

    def quarantined(self) -> list[QuarantinedRows]:
        """What is to be quarantined since the last time that this was asked."""

    def judged(self) -> Judged:
        """What was counted since the last time that this was asked."""


class NoOpJudge:
    """There are no rules."""

    def set_aside(self, rows: pa.RecordBatch, tables: Sequence[str], codes: Ints, records: Ints) -> Flags:
        """None of them."""
        return np.zeros(len(rows), np.bool_)

    def quarantined(self) -> list[QuarantinedRows]:
        """Nothing."""
        return []

    def judged(self) -> Judged:
        """Nothing."""
        return Judged()


@dataclass(slots=True)
class _Counts:
    judged: Counter[str] = field(default_factory=Counter)
    broken: Counter[tuple[str, QualityRule]] = field(default_factory=Counter)
    unjudged: Counter[tuple[str, QualityRule]] = field(default_factory=Counter)
    quarantined: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)


class RuleJudge:
    """Judges the rows of one task.

    What a row becomes is settled by the weightiest rule that it breaks: one that anybody wants to look at is
    quarantined, though another rule would drop it.
    """

    def __init__(self, checked: CheckedRules) -> None:
        self._rules = checked.rules
        self._evaluator = _evaluator(checked)
        self._offenders: list[QuarantinedRows] = []
        self._counts = _Counts()

    def set_aside(self, rows: pa.RecordBatch, tables: Sequence[str], codes: Ints, records: Ints) -> Flags:
        """Which rows don't become rows of silver; a row is for `tables[code]`, for none if its code is negative."""
        games = tuple(game_of(table) or "" for table in tables)
        self._count_judged(rows, games, codes)
        broken = self._evaluator.broken(rows, games, codes)
        for each in broken:
            self._counts.broken.update({(game, each.rule): count for game, count in _by_game(each.rows, games, codes)})
        quarantined = _any(broken, Severity.QUARANTINE, len(rows))
        dropped = _any(broken, Severity.DROP, len(rows)) & ~quarantined
        if quarantined.any():
            places = np.flatnonzero(quarantined)
            self._keep(rows.take(pa.array(places)), records[places], _names(games, codes[places]), _at(broken, places))
        self._counts.dropped.update(_first_rules(broken, Severity.DROP, dropped))
        return quarantined | dropped

    def _count_judged(self, rows: pa.RecordBatch, games: tuple[str, ...], codes: Ints) -> None:
        by_game = list(_by_game(codes >= 0, games, codes))
        self._counts.judged.update(dict(by_game))
        for rule in self._evaluator.unjudged(rows):
            self._counts.unjudged.update({(game, rule): count for game, count in by_game if rule.judges(game)})

    def _keep(self, rows: pa.RecordBatch, records: Ints, games: pa.Array, broken: list[BrokenRule]) -> None:
        flags = np.array([each.rows for each in broken])
        patterns, which = np.unique(flags, axis=1, return_inverse=True)
        sets = [tuple(broken[at].rule for at in np.flatnonzero(pattern)) for pattern in patterns.T]
        self._offenders.append(QuarantinedRows(rows, records, games, sets, which.reshape(-1)))
        for rules, count in zip(sets, np.bincount(which.reshape(-1), minlength=len(sets)), strict=True):
            self._counts.quarantined[deciding_rule(rules).name] += int(count)

    def quarantined(self) -> list[QuarantinedRows]:
        """What is to be quarantined since the last time that this was asked."""
        offenders, self._offenders = self._offenders, []
        return offenders

    def judged(self) -> Judged:
        """What was counted since the last time that this was asked."""
        counts, self._counts = self._counts, _Counts()
        return Judged(
            rules=self._rules.fingerprint,
            rows=dict(counts.judged),
            counts=tuple(
                RuleCount(
                    game=game,
                    rule=rule.name,
                    fingerprint=rule.fingerprint,
                    severity=rule.severity.value,
                    broken=counts.broken[game, rule],
                    unjudged=counts.unjudged[game, rule],
                )
                for game, rule in sorted(counts.broken.keys() | counts.unjudged.keys(), key=_by_name)
            ),
            quarantined=dict(counts.quarantined),
            dropped=dict(counts.dropped),
        )


def deciding_rule(rules: Sequence[QualityRule]) -> QualityRule:
    """Of the rules that a quarantined row breaks the one by which it is."""
    return next(rule for rule in rules if rule.severity is Severity.QUARANTINE)


def _names(games: Sequence[str], codes: Ints) -> pa.Array:
    return pa.array(games, pa.string()).take(pa.array(codes))


def _at(broken: Sequence[BrokenRule], places: Ints) -> list[BrokenRule]:
    """The same for some rows, without the rules that none of them breaks."""
    chosen = (BrokenRule(each.rule, each.rows[places]) for each in broken)
    return [each for each in chosen if each.rows.any()]


def _by_name(counted: tuple[str, QualityRule]) -> tuple[str, str]:
    game, rule = counted
    return game, rule.name


def _by_game(chosen: Flags, games: Sequence[str], codes: Ints) -> list[tuple[str, int]]:
    counts = np.bincount(codes[chosen & (codes >= 0)], minlength=len(games))
    return [(game, int(count)) for game, count in zip(games, counts, strict=True) if count]


def _any(broken: Sequence[BrokenRule], severity: Severity, length: int) -> Flags:
    result = np.zeros(length, np.bool_)
    for each in broken:
        if each.rule.severity is severity:
            result |= each.rows
    return result


def _first_rules(broken: Sequence[BrokenRule], severity: Severity, chosen: Flags) -> Counter[str]:
    """How many of the chosen rows are set aside by which rule."""
    counts: Counter[str] = Counter()
    left = chosen.copy()
    for each in broken:
        if each.rule.severity is severity:
            counts[each.rule.name] += int((left & each.rows).sum())
            left &= ~each.rows
    return +counts


def judge_for(checked: CheckedRules) -> Judge:
    """A judge for one task."""
    return RuleJudge(checked) if checked.rules.rules else NoOpJudge()


# One for all tasks that a worker process runs: what can judge which columns is found out once, not once per batch.
@lru_cache(maxsize=4)
def _evaluator(checked: CheckedRules) -> Evaluator:
    return Evaluator(checked)


def merge_judged(parts: Iterable[Judged]) -> Judged:
    """What the rules came to in several parts."""
    parts = list(parts)
    counts: dict[tuple[str, str], RuleCount] = {}
    for each in (count for part in parts for count in part.counts):
        known = counts.get((each.game, each.rule))
        broken, unjudged = (known.broken, known.unjudged) if known else (0, 0)
        counts[each.game, each.rule] = msgspec.structs.replace(
            each, broken=broken + each.broken, unjudged=unjudged + each.unjudged
        )
    return Judged(
        rules=next((part.rules for part in parts if part.rules), ""),
        rows=_added_up(part.rows for part in parts),
        counts=tuple(counts[key] for key in sorted(counts)),
        quarantined=_added_up(part.quarantined for part in parts),
        dropped=_added_up(part.dropped for part in parts),
    )


def _added_up(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    return dict(sorted(sum((Counter(each) for each in counts), Counter[str]()).items()))


def require_no_failures(judged: Judged) -> None:
    """Refuse what breaks a rule that nothing may break.

    Raises:
        BrokenRuleError: nothing of the batch may be committed.
    """
    failed = [each for each in judged.counts if each.severity == Severity.FAIL and each.broken]
    if failed:
        told = ", ".join(f"{each.broken} rows of {each.game} break '{each.rule}'" for each in failed)
        raise BrokenRuleError(
            f"{told}: nothing of the batch was taken. Put the events' cause right, or the rule, or its severity, "
            "and start the job again"
        )
