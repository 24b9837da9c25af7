"""Checks, before any row is evaluated, that rules can be evaluated."""

from collections.abc import Collection
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from gamelake.model.errors import ContractError
from gamelake.quality.engine import ROWS, engine, rows_without_zones
from gamelake.quality.rules import NO_RULES, QualityRule, RuleSet

EVENT_DATE = "event_date"


@dataclass(frozen=True, slots=True)
class CheckedRules:
    """Rules that can be evaluated, and the columns that they use, as far as rows are known to have them."""

    rules: RuleSet
    columns: pa.Schema


NO_CHECKED_RULES = CheckedRules(NO_RULES, pa.schema([]))


def check_rules(rules: RuleSet, columns: pa.Schema, games: Collection[str]) -> CheckedRules:
    """Check that every rule can be evaluated, and that its games exist.

    Args:
        rules: the rules.
        columns: all that rows of any schema version are known to have.
        games: the games of the contract; empty if any game is accepted.

    Raises:
        ContractError: a rule has an unknown column or game, or is not a condition; the message has its file and line.
    """
    known = {name.lower() for name in columns.names} | {EVENT_DATE}
    empty = rows_without_zones(pa.RecordBatch.from_pylist([], schema=columns)).append_column(
        EVENT_DATE, pa.array([], pa.date32())
    )
    connection = engine()
    connection.register(ROWS, empty)
    for rule in rules.rules:
        _check_names(rule, known, games)
        _check_type(rule, connection)
    named = {name for rule in rules.rules for name in rule.columns}
    return CheckedRules(rules, pa.schema([field for field in columns if field.name.lower() in named]))


def _check_names(rule: QualityRule, columns: Collection[str], games: Collection[str]) -> None:
    for name in rule.columns:
        if name not in columns:
            raise ContractError(
                f"{rule.location}: the rule '{rule.name}' names the column '{name}', which no schema has; "
                "correct the name, or add the schema first"
            )
    unknown = sorted(rule.games - set(games)) if games else []
    if unknown:
        raise ContractError(
            f"{rule.location}: the rule '{rule.name}' is for the game '{unknown[0]}', which the games contract doesn't "
            "list; take it out, or list the game"
        )


def _check_type(rule: QualityRule, connection: duckdb.DuckDBPyConnection) -> None:
    try:
        kind = str(connection.sql(f"SELECT {rule.expect} FROM {ROWS}").types[0])  # noqa: S608 # checked when it was read
    except duckdb.Error as error:
        reason = str(error).split("\n", 1)[0]
        raise ContractError(f"{rule.location}: the rule '{rule.name}' can't be evaluated: {reason}") from error
    if kind != "BOOLEAN":
        raise ContractError(f"{rule.location}: the rule '{rule.name}' gives {kind}; write a condition, true or false")
