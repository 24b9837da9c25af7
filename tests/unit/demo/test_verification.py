"""The simulator's ledger against the books of the lakehouse."""

from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest

from gamelake.maintenance.books import Books, TableBooks
from services.demo.verification import Gains, differences, expected, gained, read_ledger
from services.simulator.spoil import Spoiling
from tests.unit.demo.builders import TABLES, a_ledger

DEAD_LETTERS = {"undecodable": 7, "bad_framing": 5, "unknown_schema": 1, "unroutable": 5, "no_event_time": 5}
ROWS = {
    "silver/archery_duel_events": 27,
    "silver/bingo_harbor_events": 20,
    "bronze/events": 70,
    "silver/events": 47,
    "dead_letters/events": 23,
}


def books(records: int, rows: dict[str, int], dead_letters: dict[str, int]) -> Books:
    """A balance in which only what is compared matters."""
    tables = [TableBooks(table, count, 1, 1) for table, count in rows.items()]
    return Books(records=records, tables=tables, dead_letters=Counter(dead_letters))


def test_every_kind_of_event_is_expected_where_it_belongs() -> None:
    wanted = expected(a_ledger(), TABLES)

    assert wanted == Gains(records=70, rows=ROWS, dead_letters=DEAD_LETTERS)
    assert wanted.records == wanted.rows["silver/events"] + sum(wanted.dead_letters.values())


def test_each_way_of_spoiling_has_a_reason() -> None:
    ledger = a_ledger()

    assert set(ledger.undecodable) == set(Spoiling)
    assert sum(expected(ledger, TABLES).dead_letters.values()) == 23


def test_a_ledger_is_read_as_the_simulator_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    path.write_text(a_ledger().to_json())

    assert asdict(read_ledger(path)) == asdict(a_ledger())


def test_tables_that_gained_what_was_sent_differ_in_nothing() -> None:
    before = books(1_000, dict.fromkeys(ROWS, 10), {"undecodable": 3, "unroutable": 1})
    after = books(
        1_070,
        {table: 10 + rows for table, rows in ROWS.items()},
        {reason: count + before.dead_letters[reason] for reason, count in DEAD_LETTERS.items()},
    )

    assert list(differences(expected(a_ledger(), TABLES), gained(before, after))) == []


@pytest.mark.parametrize("table", sorted(ROWS))
def test_a_missing_row_is_named_with_its_table(table: str) -> None:
    after = books(70, ROWS | {table: ROWS[table] - 1}, DEAD_LETTERS)

    (problem,) = differences(expected(a_ledger(), TABLES), gained(Books(), after))

    assert problem == f"{table} gained {ROWS[table] - 1} rows instead of {ROWS[table]}"


def test_a_table_that_is_not_there_is_missed() -> None:
    rows = {table: count for table, count in ROWS.items() if table != "silver/bingo_harbor_events"}

    (problem,) = differences(expected(a_ledger(), TABLES), gained(Books(), books(70, rows, DEAD_LETTERS)))

    assert problem == "silver/bingo_harbor_events gained 0 rows instead of 20"


def test_a_table_that_nothing_was_sent_to_must_not_grow() -> None:
    after = books(70, ROWS | {"silver/chess_royale_events": 1}, DEAD_LETTERS)

    (problem,) = differences(expected(a_ledger(), TABLES), gained(Books(), after))

    assert problem == "silver/chess_royale_events gained 1 rows instead of 0"


def test_a_dead_letter_of_another_reason_is_told_twice() -> None:
    swapped = DEAD_LETTERS | {"undecodable": 6, "invalid_schema": 1}

    problems = list(differences(expected(a_ledger(), TABLES), gained(Books(), books(70, ROWS, swapped))))

    assert problems == [
        "1 dead letters are invalid_schema instead of 0",
        "6 dead letters are undecodable instead of 7",
    ]


def test_records_that_were_never_taken_are_told() -> None:
    (problem,) = differences(expected(a_ledger(), TABLES), gained(Books(), books(69, ROWS, DEAD_LETTERS)))

    assert problem == "the simulator sent 70 records, the job took 69"
