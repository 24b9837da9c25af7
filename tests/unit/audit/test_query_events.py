"""Trino's events of queries, as Trino 476 sends them to Kafka, as rows."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from services.audit.masking import LiteralMask
from services.audit.query_events import COLUMNS, query_row

CREATED, COMPLETED, OVER_A_VIEW, FAILED = (Path(__file__).parent / "query_events.jsonl").read_bytes().splitlines()
mask = LiteralMask(["Kart Rumble"])


def test_an_ended_query_has_its_user_tables_columns_and_what_it_read() -> None:
    row = query_row(COMPLETED, mask)

    assert row == {
        "event": "completed",
        "query_id": row["query_id"],
        "user_name": "analyst",
        "original_user": "analyst",
        "principal": "analyst",
        "source": "a tool",
        "client_address": "127.0.0.1",
        "user_agent": "Trino Python Client/0.340.0",
        "query_type": "SELECT",
        "update_type": None,
        "state": "FINISHED",
        "error": None,
        "error_type": None,
        "created_at": row["created_at"],
        "ended_at": row["ended_at"],
        "catalog_name": "delta",
        "schema_name": None,
        "tables_read": ["silver.events"],
        "columns_read": ["silver.events.amount", "silver.events.game_name", "silver.events.gamer_id"],
        "rows_read": 1,
        "bytes_read": 501,
        "rows_returned": 1,
        "bytes_returned": 16,
        "query_text": "SELECT game_name FROM delta.silver.events WHERE gamer_id = '***' OR amount > 2",
        "prepared_text": None,
    }


def test_a_query_that_begins_is_a_row_with_the_same_id() -> None:
    begun, ended = query_row(CREATED, mask), query_row(COMPLETED, mask)

    assert (begun["event"], begun["state"]) == ("created", "QUEUED")
    assert (begun["query_id"], begun["created_at"]) == (ended["query_id"], ended["created_at"])
    assert begun["ended_at"] is None


def test_a_query_over_a_view_has_the_view_and_the_table_under_it() -> None:
    row = query_row(OVER_A_VIEW, mask)

    assert row["tables_read"] == ["silver.events", "silver.v"]
    assert row["columns_read"] == ["silver.events.game_name"]
    assert "USING 'Kart Rumble'" in str(row["query_text"])


def test_a_failed_query_has_the_name_of_its_error_and_no_message() -> None:
    row = query_row(FAILED, mask)

    assert (row["state"], row["error"], row["error_type"]) == ("FAILED", "INVALID_CAST_ARGUMENT", "USER_ERROR")
    assert "anna" not in str(row)


def test_each_row_fits_the_columns() -> None:
    rows = [query_row(record, mask) for record in (CREATED, COMPLETED, OVER_A_VIEW, FAILED)]

    assert pa.Table.from_pylist(rows, schema=COLUMNS).to_pylist() == rows
    assert all(isinstance(row["created_at"], datetime) and row["created_at"].tzinfo is UTC for row in rows)


def test_long_texts_are_cut() -> None:
    row = query_row(COMPLETED.replace(b"SELECT", b"SELECT " + b"x, " * 100_000, 1), mask)

    assert len(str(row["query_text"])) == 100_000


@pytest.mark.parametrize("record", [b"", b"{}", b"[]", b'{"eventPayload": {}}', b"\xff", COMPLETED[:-1]])
def test_another_record_is_refused(record: bytes) -> None:
    with pytest.raises((msgspec.MsgspecError, UnicodeDecodeError)):
        query_row(record, mask)
