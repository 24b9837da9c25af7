"""Checks that the retentions of a lakehouse are consistent: no data is deleted while something else still needs it.

This module reads nothing. Callers pass the retentions that they know; rules about other retentions are skipped.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from gamelake.contract.games import MaintenancePolicy

FOR_EVER = timedelta.max
_IN_HOURS_BELOW = 2


class RetentionKind(StrEnum):
    """A retention, or a period that depends on one; also the metric's label."""

    KAFKA = "kafka"
    TABLES = "tables"
    LOGS = "logs"
    BACKUPS = "backups"
    BACKUP_INTERVAL = "backup_interval"
    RESTORE_WINDOW = "restore_window"
    LONGEST_QUERY = "longest_query"


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """A rule that one retention must be at least as long as another period.

    Attributes:
        longer: the retention.
        shorter: the other period.
        otherwise: the consequence of a shorter retention, for messages.
    """

    longer: RetentionKind
    shorter: RetentionKind
    otherwise: str


RULES = (
    RetentionRule(
        RetentionKind.TABLES,
        RetentionKind.RESTORE_WINDOW,
        "vacuum deletes files that a restore within its window needs",
    ),
    RetentionRule(RetentionKind.TABLES, RetentionKind.LONGEST_QUERY, "vacuum deletes files that a running query reads"),
    RetentionRule(
        RetentionKind.LOGS, RetentionKind.TABLES, "tables keep files of versions that are no longer in the log"
    ),
    RetentionRule(
        RetentionKind.KAFKA,
        RetentionKind.RESTORE_WINDOW,
        "records of the restore window can't be read again from Kafka if bronze itself was lost",
    ),
    RetentionRule(
        RetentionKind.KAFKA,
        RetentionKind.BACKUP_INTERVAL,
        "Kafka deletes records of the time after the last backup before the next backup",
    ),
    RetentionRule(
        RetentionKind.BACKUPS,
        RetentionKind.RESTORE_WINDOW,
        "tables can be restored to a time for which no backup of the checkpoints, vault, registry and catalog exists",
    ),
)


def promised(policy: MaintenancePolicy) -> dict[RetentionKind, timedelta]:
    """Return the retentions of the games contract's maintenance policy."""
    return {
        RetentionKind.TABLES: policy.retention,
        RetentionKind.RESTORE_WINDOW: timedelta(days=policy.restore_window_days),
        RetentionKind.LONGEST_QUERY: timedelta(hours=policy.longest_query_hours),
        RetentionKind.BACKUPS: policy.backups_reach,
        RetentionKind.BACKUP_INTERVAL: policy.backup_interval,
    }


def applicable(spans: Mapping[RetentionKind, timedelta]) -> list[RetentionRule]:
    """Return the rules whose retentions are both known."""
    return [rule for rule in RULES if {rule.longer, rule.shorter} <= spans.keys()]


def fits(rule: RetentionRule, spans: Mapping[RetentionKind, timedelta]) -> bool:
    """Return True if a rule holds; both retentions must be known."""
    return spans[rule.longer] >= spans[rule.shorter]


def contradictions(spans: Mapping[RetentionKind, timedelta]) -> list[str]:
    """Describe each rule that does not hold, in one sentence."""
    return [_described(rule, spans) for rule in applicable(spans) if not fits(rule, spans)]


def _described(rule: RetentionRule, spans: Mapping[RetentionKind, timedelta]) -> str:
    longer, shorter = spans[rule.longer], spans[rule.shorter]
    return f"{rule.longer} ({_days(longer)}) is shorter than {rule.shorter} ({_days(shorter)}): {rule.otherwise}"


def _days(span: timedelta) -> str:
    if span == FOR_EVER:
        return "for ever"
    days = span / timedelta(days=1)
    return f"{days:g} days" if days >= _IN_HOURS_BELOW else f"{24 * days:g} h"
