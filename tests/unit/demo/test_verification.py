"""The simulators' ledgers are reconciled with the tables."""

from collections import Counter
from pathlib import Path

import pytest

from gamelake.ledger.reconciliation import Reconciliation, TableReconciliation
from tests.unit.demo.builders import TABLES, a_ledger, an_http_ledger, ledgers
from tools.demo.verification import Gains, RunLedgers, allowing_repeats, differences, expected, gained
from tools.simulator.defects import Corruption
from tools.simulator.ledger import AcknowledgedEvents

DEAD_LETTERS = {
    "undecodable": 7,
    "bad_framing": 5,
    "unknown_schema": 1,
    "unroutable": 5,
    "no_event_time": 5,
    "implausible_event_time": 6,
}
ROWS = {
    "silver/archery_duel_events": 26,
    "silver/bingo_harbor_events": 18,
    "bronze/events": 76,
    "silver/events": 44,
    "dead_letters/events": 29,
}
DUPLICATES = {"archery_duel": 1, "bingo_harbor": 2}


def reconciled(
    records: int, rows: dict[str, int], dead_letters: dict[str, int], duplicates: dict[str, int] | None = None
) -> Reconciliation:
    """A reconciliation that has only the figures that are compared."""
    tables = [TableReconciliation(table, count, 1, 1) for table, count in rows.items()]
    found = Counter(DUPLICATES if duplicates is None else duplicates)
    return Reconciliation(records=records, tables=tables, dead_letters=Counter(dead_letters), duplicates=found)


def test_every_kind_of_event_is_expected_where_it_belongs() -> None:
    assert set(a_ledger().undecodable) == set(Corruption)

    wanted = expected(ledgers(), TABLES)

    assert wanted == Gains(records=76, rows=ROWS, dead_letters=DEAD_LETTERS, duplicates=DUPLICATES)
    without_a_row = sum(wanted.dead_letters.values()) + sum(wanted.duplicates.values())
    assert wanted.records == wanted.rows["silver/events"] + without_a_row


def test_ledgers_are_read_as_the_simulator_writes_them(tmp_path: Path) -> None:
    over_http = an_http_ledger(by_game={"Archery Duel": AcknowledgedEvents(5, 1)}, rejected={"malformed": 2})
    kafka, http = tmp_path / "kafka.json", tmp_path / "http.json"
    kafka.write_text(a_ledger().to_json())
    http.write_text(over_http.to_json())

    assert RunLedgers.read(kafka, http) == RunLedgers(a_ledger(), over_http)


def test_what_the_gateway_acknowledged_is_expected_besides() -> None:
    wanted = expected(ledgers(archery_duel=AcknowledgedEvents(100, 3)), TABLES)

    assert wanted.records == 176
    assert wanted.rows == ROWS | {"silver/archery_duel_events": 26 + 97, "bronze/events": 176, "silver/events": 44 + 97}
    assert wanted.dead_letters == DEAD_LETTERS
    assert wanted.duplicates == {"archery_duel": 1 + 3, "bingo_harbor": 2}


def test_what_was_sent_again_for_want_of_an_answer_may_be_there_twice_if_it_was_found_out() -> None:
    wanted = expected(ledgers(), TABLES)
    found_out = reconciled(81, ROWS | {"bronze/events": 81}, DEAD_LETTERS, {"archery_duel": 4, "bingo_harbor": 4})
    overlooked = reconciled(81, ROWS | {"bronze/events": 81, "silver/events": 49}, DEAD_LETTERS)

    def problems(after: Reconciliation) -> list[str]:
        found = gained(Reconciliation(), after)
        return list(differences(allowing_repeats(wanted, found), found))

    assert problems(found_out) == []
    assert len(problems(overlooked)) == 3


def test_tables_that_gained_what_was_sent_differ_in_nothing() -> None:
    before = reconciled(1_000, dict.fromkeys(ROWS, 10), {"undecodable": 3, "unroutable": 1}, {"archery_duel": 5})
    after = reconciled(
        1_076,
        {table: 10 + rows for table, rows in ROWS.items()},
        {reason: count + before.dead_letters[reason] for reason, count in DEAD_LETTERS.items()},
        {"archery_duel": 6, "bingo_harbor": 2},
    )

    assert list(differences(expected(ledgers(), TABLES), gained(before, after))) == []


@pytest.mark.parametrize("table", sorted(ROWS))
def test_a_missing_row_is_named_with_its_table(table: str) -> None:
    after = reconciled(76, ROWS | {table: ROWS[table] - 1}, DEAD_LETTERS)

    (problem,) = differences(expected(ledgers(), TABLES), gained(Reconciliation(), after))

    assert problem == f"{table} gained {ROWS[table] - 1} rows instead of {ROWS[table]}"


def test_a_table_that_is_not_there_is_missed() -> None:
    rows = {table: count for table, count in ROWS.items() if table != "silver/bingo_harbor_events"}

    (problem,) = differences(expected(ledgers(), TABLES), gained(Reconciliation(), reconciled(76, rows, DEAD_LETTERS)))

    assert problem == "silver/bingo_harbor_events gained 0 rows instead of 18"


def test_a_table_that_nothing_was_sent_to_must_not_grow() -> None:
    after = reconciled(76, ROWS | {"silver/chess_royale_events": 1}, DEAD_LETTERS)

    (problem,) = differences(expected(ledgers(), TABLES), gained(Reconciliation(), after))

    assert problem == "silver/chess_royale_events gained 1 rows instead of 0"


def test_a_dead_letter_of_another_reason_is_reported_twice() -> None:
    swapped = DEAD_LETTERS | {"undecodable": 6, "invalid_schema": 1}

    problems = list(differences(expected(ledgers(), TABLES), gained(Reconciliation(), reconciled(76, ROWS, swapped))))

    assert problems == ["1 dead letters are invalid_schema instead of 0", "6 dead letters are undecodable instead of 7"]


def test_an_unrecognised_duplicate_is_reported() -> None:
    after = reconciled(76, ROWS, DEAD_LETTERS, {"archery_duel": 1, "bingo_harbor": 1})

    (problem,) = differences(expected(ledgers(), TABLES), gained(Reconciliation(), after))

    assert problem == "1 events of bingo_harbor were recognised as duplicates instead of 2"


def test_records_that_were_never_committed_are_reported() -> None:
    (problem,) = differences(expected(ledgers(), TABLES), gained(Reconciliation(), reconciled(75, ROWS, DEAD_LETTERS)))

    assert problem == "the simulators sent 76 records, the job committed 75"
