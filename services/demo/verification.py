"""Compares what the tables have gained with what the simulator has sent."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from gamelake.contracts.reasons import DeadLetterReason
from gamelake.maintenance.books import Books
from gamelake.naming import BRONZE_EVENTS, DEAD_LETTERS, SILVER_EVENTS
from services.simulator.ledger import GameCounts, Ledger
from services.simulator.spoil import Spoiling

_REASONS: Mapping[Spoiling, DeadLetterReason] = {
    Spoiling.RANDOM_BODY: DeadLetterReason.UNDECODABLE,
    Spoiling.TRUNCATED_BODY: DeadLetterReason.UNDECODABLE,
    Spoiling.WRONG_MAGIC: DeadLetterReason.BAD_FRAMING,
    Spoiling.UNKNOWN_SCHEMA: DeadLetterReason.UNKNOWN_SCHEMA,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gains:
    """What a run adds to a lakehouse: records, rows by table, dead letters by reason; what is not named is 0."""

    records: int
    rows: Mapping[str, int]
    dead_letters: Mapping[str, int]


def read_ledger(path: Path) -> Ledger:
    """The accounts of a run that has ended."""
    return msgspec.json.decode(path.read_bytes(), type=Ledger)


def expected(ledger: Ledger, tables: Mapping[str, str]) -> Gains:
    """What the tables must gain by a run of the simulator.

    Args:
        ledger: the run's accounts.
        tables: the silver table of each game by its name.
    """
    dead_letters: dict[str, int] = {}
    for kind, count in ledger.undecodable.items():
        _add(dead_letters, _REASONS[Spoiling(kind)], count)
    _add(dead_letters, DeadLetterReason.UNROUTABLE, sum(ledger.unknown_game.values()))
    _add(dead_letters, DeadLetterReason.NO_EVENT_TIME, ledger.null_time)
    games: dict[str, int] = {}
    for name, counts in ledger.by_game.items():
        _add(games, tables[name], _rows(counts))
    shared = {
        BRONZE_EVENTS: ledger.sent,
        SILVER_EVENTS: sum(games.values()),
        DEAD_LETTERS: sum(dead_letters.values()),
    }
    return Gains(records=ledger.sent, rows=games | shared, dead_letters=dead_letters)


def _rows(counts: GameCounts) -> int:
    """A duplicate is a row like any other; an event without a time is none."""
    return counts.on_time + counts.late + counts.future + 2 * counts.duplicated


def _add(counts: dict[str, int], name: str, count: int) -> None:
    counts[name] = counts.get(name, 0) + count


def gained(before: Books, after: Books) -> Gains:
    """What the tables have gained between two balances."""
    rows = {table.table: table.rows for table in after.tables}
    for table in before.tables:
        _add(rows, table.table, -table.rows)
    reasons = sorted(before.dead_letters.keys() | after.dead_letters.keys())
    return Gains(
        records=after.records - before.records,
        rows=rows,
        dead_letters={reason: after.dead_letters[reason] - before.dead_letters[reason] for reason in reasons},
    )


def differences(wanted: Gains, found: Gains) -> Iterator[str]:
    """A sentence for each figure that is not as it must be."""
    if wanted.records != found.records:
        yield f"the simulator sent {wanted.records:,} records, the job took {found.records:,}"
    for table in sorted(wanted.rows.keys() | found.rows.keys()):
        want, got = wanted.rows.get(table, 0), found.rows.get(table, 0)
        if want != got:
            yield f"{table} gained {got:,} rows instead of {want:,}"
    for reason in sorted(wanted.dead_letters.keys() | found.dead_letters.keys()):
        want, got = wanted.dead_letters.get(reason, 0), found.dead_letters.get(reason, 0)
        if want != got:
            yield f"{got:,} dead letters are {reason} instead of {want:,}"
