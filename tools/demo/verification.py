"""Compares what the tables have gained with what the simulator has sent."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import msgspec

from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.model.naming import BRONZE_EVENTS, DEAD_LETTERS, SILVER_EVENTS, game_of
from gamelake.storage.reconciliation import Books
from tools.simulator.defects import Corruption
from tools.simulator.ledger import GameCounts, HttpLedger, KafkaLedger

_REASONS: Mapping[Corruption, DeadLetterReason] = {
    Corruption.RANDOM_BODY: DeadLetterReason.UNDECODABLE,
    Corruption.TRUNCATED_BODY: DeadLetterReason.UNDECODABLE,
    Corruption.WRONG_MAGIC: DeadLetterReason.BAD_FRAMING,
    Corruption.UNKNOWN_SCHEMA: DeadLetterReason.UNKNOWN_SCHEMA,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gains:
    """What a run adds to a lakehouse: records, rows by table, dead letters by reason, duplicates by game.

    What is not named is 0.
    """

    records: int
    rows: Mapping[str, int]
    dead_letters: Mapping[str, int]
    duplicates: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RunLedgers:
    """The accounts of a run: what came straight to Kafka, and what the gateway acknowledged."""

    kafka: KafkaLedger
    http: HttpLedger

    @classmethod
    def read(cls, kafka: Path, http: Path) -> Self:
        """The accounts of a run that has ended."""
        return cls(
            msgspec.json.decode(kafka.read_bytes(), type=KafkaLedger),
            msgspec.json.decode(http.read_bytes(), type=HttpLedger),
        )

    @property
    def records(self) -> int:
        """Records that Kafka must have, at least: a request without an answer may have left some there, too."""
        return self.kafka.sent + self.http.acknowledged


def expected(ledgers: RunLedgers, tables: Mapping[str, str]) -> Gains:
    """What the tables must gain by a run.

    Args:
        ledgers: the run's accounts.
        tables: the silver table of each game by its name.
    """
    ledger = ledgers.kafka
    dead_letters: dict[str, int] = {}
    for kind, count in ledger.undecodable.items():
        _add(dead_letters, _REASONS[Corruption(kind)], count)
    _add(dead_letters, DeadLetterReason.UNROUTABLE, sum(ledger.unknown_game.values()))
    _add(dead_letters, DeadLetterReason.NO_EVENT_TIME, ledger.null_time)
    games: dict[str, int] = {}
    duplicates: dict[str, int] = {}
    for name, counts in ledger.by_game.items():
        _add(games, tables[name], _rows(counts))
        _add(duplicates, game_of(tables[name]) or name, counts.duplicated)
    for name, answered in ledgers.http.by_game.items():
        _add(games, tables[name], answered.rows)
        _add(duplicates, game_of(tables[name]) or name, answered.duplicates)
    shared = {
        BRONZE_EVENTS: ledgers.records,
        SILVER_EVENTS: sum(games.values()),
        DEAD_LETTERS: sum(dead_letters.values()),
    }
    return Gains(records=ledgers.records, rows=games | shared, dead_letters=dead_letters, duplicates=duplicates)


def _rows(counts: GameCounts) -> int:
    """An event that is sent twice is one row; an event without a time is none."""
    return counts.on_time + counts.late + counts.future + counts.duplicated


def _add(counts: dict[str, int], name: str, count: int) -> None:
    counts[name] = counts.get(name, 0) + count


def allowing_repeats(wanted: Gains, found: Gains) -> Gains:
    """What is wanted if requests without an answer have left events in Kafka that were then sent again.

    Each record beyond the acknowledged ones must have been found to be a duplicate.
    """
    repeats = found.records - wanted.records
    found_again = sum(found.duplicates.values()) - sum(wanted.duplicates.values())
    if repeats <= 0 or found_again != repeats:
        return wanted
    rows = {**wanted.rows, BRONZE_EVENTS: wanted.rows[BRONZE_EVENTS] + repeats}
    return replace(wanted, records=found.records, rows=rows, duplicates=found.duplicates)


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
        duplicates=after.duplicates - before.duplicates,
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
    for game in sorted(wanted.duplicates.keys() | found.duplicates.keys()):
        want, got = wanted.duplicates.get(game, 0), found.duplicates.get(game, 0)
        if want != got:
            yield f"{got:,} events of {game} were found to be duplicates instead of {want:,}"
