"""Applies rules to rows: which go to silver, which are quarantined or dropped, and how many broke which rule."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import msgspec
import numpy as np
import pyarrow as pa

from gamelake.ledger.manifests import Judged, RuleCount
from gamelake.model.arrays import Flags, Ints
from gamelake.model.errors import BrokenRuleError
from gamelake.model.naming import game_of
from gamelake.model.worker_cache import per_worker
from gamelake.quality.checking import CheckedRules
from gamelake.quality.evaluation import BrokenRule, Evaluator
from gamelake.quality.rules import QualityRule, Severity


@dataclass(frozen=True, slots=True)
class QuarantinedRows:
    """Rows to quarantine; the arrays have one element per row, in order.

    Attributes:
        rows: in the columns of silver.
        records: the row number of the record in its batch (int64).
        games: the name of the game (string).
        sets: combinations of broken rules, each with the most severe rule first.
        which: the index in `sets` of the rules that the row breaks (int64).
    """

    rows: pa.RecordBatch
    records: Ints
    games: pa.Array
    sets: list[tuple[QualityRule, ...]]
    which: Ints


class Judge(Protocol):
    """Finds the rows of a task that must not become rows of silver, and counts them."""

    def exclude(self, rows: pa.RecordBatch, tables: Sequence[str], codes: Ints, records: Ints) -> Flags:
        """Evaluate the rules on rows.

        Args:
            rows: in the columns of silver.
            tables: the names of all tables.
            codes: the index in `tables` of the row's table (int64, one per row); negative rows are not evaluated.
            records: the row number of the row's record in its batch (int64, one per row).

        Returns:
            Which rows are quarantined or dropped (bool, one per row).
        """

    def quarantined(self) -> list[QuarantinedRows]:
        """Return the rows to quarantine since the last call."""

    def judged(self) -> Judged:
        """Return the counts since the last call."""


class NoOpJudge:
    """For a lakehouse without rules."""

    def exclude(self, rows: pa.RecordBatch, tables: Sequence[str], codes: Ints, records: Ints) -> Flags:
        """Exclude no row: all false (bool, one per row)."""
        return np.zeros(len(rows), np.bool_)

    def quarantined(self) -> list[QuarantinedRows]:
        """Return no rows."""
        return []

    def judged(self) -> Judged:
        """Return no counts."""
        return Judged()


@dataclass(slots=True)
class _Counts:
    judged: Counter[str] = field(default_factory=Counter)
    broken: Counter[tuple[str, QualityRule]] = field(default_factory=Counter)
    unjudged: Counter[tuple[str, QualityRule]] = field(default_factory=Counter)
    quarantined: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)


class RuleJudge:
    """Evaluates rules on the rows of one task.

    The most severe broken rule decides about a row: it is quarantined if one of its rules quarantines, even if another
    rule drops.
    """

    def __init__(self, checked: CheckedRules) -> None:
        self._rules = checked.rules
        self._evaluator = _evaluator(checked)
        self._offenders: list[QuarantinedRows] = []
        self._counts = _Counts()

    def exclude(self, rows: pa.RecordBatch, tables: Sequence[str], codes: Ints, records: Ints) -> Flags:
        """Evaluate the rules on rows.

        Args:
            rows: in the columns of silver.
            tables: the names of all tables.
            codes: the index in `tables` of the row's table (int64, one per row); negative rows are not evaluated.
            records: the row number of the row's record in its batch (int64, one per row).

        Returns:
            Which rows are quarantined or dropped (bool, one per row).
        """
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
        for rule in self._evaluator.not_evaluated(rows):
            self._counts.unjudged.update({(game, rule): count for game, count in by_game if rule.applies_to(game)})

    def _keep(self, rows: pa.RecordBatch, records: Ints, games: pa.Array, broken: list[BrokenRule]) -> None:
        flags = np.array([each.rows for each in broken])
        patterns, which = np.unique(flags, axis=1, return_inverse=True)
        sets = [tuple(broken[at].rule for at in np.flatnonzero(pattern)) for pattern in patterns.T]
        self._offenders.append(QuarantinedRows(rows, records, games, sets, which.reshape(-1)))
        for rules, count in zip(sets, np.bincount(which.reshape(-1), minlength=len(sets)), strict=True):
            self._counts.quarantined[deciding_rule(rules).name] += int(count)

    def quarantined(self) -> list[QuarantinedRows]:
        """Return the rows to quarantine since the last call."""
        offenders, self._offenders = self._offenders, []
        return offenders

    def judged(self) -> Judged:
        """Return the counts since the last call."""
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
    """Return the first rule in the list that quarantines."""
    return next(rule for rule in rules if rule.severity is Severity.QUARANTINE)


def _names(games: Sequence[str], codes: Ints) -> pa.Array:
    return pa.array(games, pa.string()).take(pa.array(codes))


def _at(broken: Sequence[BrokenRule], places: Ints) -> list[BrokenRule]:
    """The same for the rows at some positions, without rules that none of them breaks."""
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
    """The number of chosen rows by the first rule of a severity that they break."""
    counts: Counter[str] = Counter()
    left = chosen.copy()
    for each in broken:
        if each.rule.severity is severity:
            counts[each.rule.name] += int((left & each.rows).sum())
            left &= ~each.rows
    return +counts


def judge_for(checked: CheckedRules) -> Judge:
    """Return the judge of one task."""
    return RuleJudge(checked) if checked.rules.rules else NoOpJudge()


def _evaluator(checked: CheckedRules) -> Evaluator:
    """Return the evaluator of this process, which keeps compiled kernels; around a change of the rules it has both."""
    return per_worker(Evaluator, checked, lambda: Evaluator(checked), most=2)


def merge_judged(parts: Iterable[Judged]) -> Judged:
    """Sum the counts of several tasks."""
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
        rows=_sum_counts(part.rows for part in parts),
        counts=tuple(counts[key] for key in sorted(counts)),
        quarantined=_sum_counts(part.quarantined for part in parts),
        dropped=_sum_counts(part.dropped for part in parts),
    )


def _sum_counts(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    return dict(sorted(sum((Counter(each) for each in counts), Counter[str]()).items()))


def require_no_failures(judged: Judged) -> None:
    """Reject a batch in which a row breaks a rule of the severity `fail`.

    Raises:
        BrokenRuleError: there is such a row, so nothing of the batch may be committed.
    """
    failed = [each for each in judged.counts if each.severity == Severity.FAIL and each.broken]
    if failed:
        broken = ", ".join(f"{each.broken} rows of {each.game} break '{each.rule}'" for each in failed)
        raise BrokenRuleError(
            f"{broken}: nothing of the batch was taken. Repair the cause, or change the rule or its severity, "
            "and restart the job"
        )
