"""Do the retentions of a lakehouse fit together? What one promises, another must not have deleted before.

Nothing is read here: who asks brings the spans that are known, and those that aren't are left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from gamelake.model.games import MaintenancePolicy

FOR_EVER = timedelta.max
_IN_HOURS_BELOW = 2


class RetentionKind(StrEnum):
    """Something that is kept, or promised, for a time; also the metric's label."""

    KAFKA = "kafka"
    TABLES = "tables"
    LOGS = "logs"
    BACKUPS = "backups"
    BACKUP_INTERVAL = "backup_interval"
    RESTORE_WINDOW = "restore_window"
    LONGEST_QUERY = "longest_query"


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """One span that must be at least as long as another, and what is lost where it isn't."""

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
        RetentionKind.LOGS, RetentionKind.TABLES, "tables keep files of versions that no log entry can name any more"
    ),
    RetentionRule(
        RetentionKind.KAFKA,
        RetentionKind.RESTORE_WINDOW,
        "records of the restore window can't be taken again from Kafka where bronze itself was lost",
    ),
    RetentionRule(
        RetentionKind.KAFKA,
        RetentionKind.BACKUP_INTERVAL,
        "records that came after the last backup are gone from Kafka before the next",
    ),
    RetentionRule(
        RetentionKind.BACKUPS,
        RetentionKind.RESTORE_WINDOW,
        "tables can be set back to a time of which no checkpoint, vault, registry or catalog is left",
    ),
)


def promised(policy: MaintenancePolicy) -> dict[RetentionKind, timedelta]:
    """The spans that the games contract states."""
    return {
        RetentionKind.TABLES: policy.retention,
        RetentionKind.RESTORE_WINDOW: timedelta(days=policy.restore_window_days),
        RetentionKind.LONGEST_QUERY: timedelta(hours=policy.longest_query_hours),
        RetentionKind.BACKUPS: policy.backups_reach,
        RetentionKind.BACKUP_INTERVAL: policy.backup_interval,
    }


def applicable(spans: Mapping[RetentionKind, timedelta]) -> list[RetentionRule]:
    """The rules whose spans are both known."""
    return [rule for rule in RULES if {rule.longer, rule.shorter} <= spans.keys()]


def fits(rule: RetentionRule, spans: Mapping[RetentionKind, timedelta]) -> bool:
    """Whether a rule holds for spans that it can be held against."""
    return spans[rule.longer] >= spans[rule.shorter]


def contradictions(spans: Mapping[RetentionKind, timedelta]) -> list[str]:
    """What doesn't fit, a sentence each; nothing where all is well."""
    return [_told(rule, spans) for rule in applicable(spans) if not fits(rule, spans)]


def _told(rule: RetentionRule, spans: Mapping[RetentionKind, timedelta]) -> str:
    longer, shorter = spans[rule.longer], spans[rule.shorter]
    return f"{rule.longer} ({_days(longer)}) is shorter than {rule.shorter} ({_days(shorter)}): {rule.otherwise}"


def _days(span: timedelta) -> str:
    if span == FOR_EVER:
        return "for ever"
    days = span / timedelta(days=1)
    return f"{days:g} days" if days >= _IN_HOURS_BELOW else f"{24 * days:g} h"
