"""Reconciles the rows that the tables gained in a run with the ledgers of sent events."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import msgspec

from gamelake.ledger.reconciliation import Reconciliation
from gamelake.model.dead_letter_reasons import DeadLetterReason
from gamelake.model.naming import BRONZE_EVENTS, DEAD_LETTERS, SILVER_EVENTS, game_of
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
    """The gains of a lakehouse in a run: records, rows by table, dead letters by reason, duplicates by game.

    Missing keys count as 0.
    """

    records: int
    rows: Mapping[str, int]
    dead_letters: Mapping[str, int]
    duplicates: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RunLedgers:
    """The ledgers of a run: what was sent to Kafka directly, and what the gateway acknowledged."""

    kafka: KafkaLedger
    http: HttpLedger

    @classmethod
    def read(cls, kafka: Path, http: Path) -> Self:
        """Read the ledgers of a finished run."""
        return cls(
            msgspec.json.decode(kafka.read_bytes(), type=KafkaLedger),
            msgspec.json.decode(http.read_bytes(), type=HttpLedger),
        )

    @property
    def records(self) -> int:
        """The least number of records in Kafka: requests without a response may have written more."""
        return self.kafka.sent + self.http.acknowledged


def expected(ledgers: RunLedgers, tables: Mapping[str, str]) -> Gains:
    """Compute the gains that the tables must have in a run.

    Args:
        ledgers: the ledgers of the run.
        tables: the silver table of each game, by the game's title.
    """
    ledger = ledgers.kafka
    dead_letters: dict[str, int] = {}
    for kind, count in ledger.undecodable.items():
        _add(dead_letters, _REASONS[Corruption(kind)], count)
    _add(dead_letters, DeadLetterReason.UNROUTABLE, sum(ledger.unknown_game.values()))
    _add(dead_letters, DeadLetterReason.NO_EVENT_TIME, ledger.null_time)
    _add(dead_letters, DeadLetterReason.IMPLAUSIBLE_EVENT_TIME, ledger.wrong_clock)
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
    """Count the rows of decodable events: one for an event that was sent twice, none without a plausible time."""
    return counts.on_time + counts.late + counts.future + counts.duplicated


def _add(counts: dict[str, int], name: str, count: int) -> None:
    counts[name] = counts.get(name, 0) + count


def allowing_repeats(wanted: Gains, found: Gains) -> Gains:
    """Return the wanted gains if requests without a response have written events that were then sent again.

    Each record beyond the acknowledged ones must have been recognised as a duplicate.
    """
    repeats = found.records - wanted.records
    found_again = sum(found.duplicates.values()) - sum(wanted.duplicates.values())
    if repeats <= 0 or found_again != repeats:
        return wanted
    rows = {**wanted.rows, BRONZE_EVENTS: wanted.rows[BRONZE_EVENTS] + repeats}
    return replace(wanted, records=found.records, rows=rows, duplicates=found.duplicates)


def gained(before: Reconciliation, after: Reconciliation) -> Gains:
    """Return the gains of the tables between two reconciliations."""
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
    """Yield a message for each figure that differs."""
    if wanted.records != found.records:
        yield f"the simulators sent {wanted.records:,} records, the job committed {found.records:,}"
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
            yield f"{got:,} events of {game} were recognised as duplicates instead of {want:,}"
