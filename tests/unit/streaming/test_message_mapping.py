"""A message of another schema becomes an event by a mapping of the contract, and a dead letter without one."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from gamelake.contract.messages import MappedColumn, MessageSpec
from gamelake.layers.silver import COMMON_SCHEMA
from gamelake.model.errors import ContractError
from gamelake.model.naming import DEAD_LETTERS, SILVER_EVENTS
from gamelake.objects.store import Location, Store
from gamelake.streaming.message_mapping import load_event_contract
from gamelake.streaming.rules import known_columns
from tests.unit.streaming.tasks import (
    GAMES,
    KART_TABLE,
    KafkaTaskRecord,
    TaskLakehouse,
    a_record,
    compiled,
    framed,
    numbered,
)

LAP = """
syntax = "proto3";
package pitwall.v1;
message Lap {
  bytes lap_id = 1;
  int64 finished_at_ms = 2;
  Driver driver = 3;
  Kind kind = 4;
  string event_date = 5;
  repeated int32 sector_ms = 6;
  map<string, double> tyre_wear = 7;
  optional int64 fee_cents = 8;
  string pace = 9;
}
message Driver { int64 number = 1; string team = 2; }
enum Kind { KIND_UNSPECIFIED = 0; KIND_QUALIFYING = 1; }
"""
NOON_MS = 1_767_268_800_000
MAPPING = {
    "event_id": "hex(lap_id)",
    "event_time": "make_timestamp(finished_at_ms * 1000)",
    "event_name": "lower(replace(kind, 'KIND_', ''))",
    "game_name": "'Kart Rumble'",
    "gamer_id": "driver.number",
    "amount": "fee_cents / 100",
}


def a_mapping(message: str = "pitwall.v1.Lap", **changes: str) -> MessageSpec:
    return msgspec.convert(
        {"message": message, "columns": MAPPING | changes, "leave_out": ["event_date", "lap_id"]}, MessageSpec
    )


def a_lap(lakehouse: TaskLakehouse, text: str = LAP, under: int = 50, **changes: object) -> KafkaTaskRecord:
    schema = compiled(text)
    lakehouse.register(under, schema)
    lap = {
        "lapId": "qrs=",
        "finishedAtMs": NOON_MS,
        "driver": {"number": 7, "team": "Red"},
        "kind": "KIND_QUALIFYING",
        "sectorMs": [30_100, 31_200],
        "tyreWear": {"front_left": 0.25},
        "feeCents": 250,
    }
    return KafkaTaskRecord(value=framed(lap | changes, schema, under))


def mapped(folder: Path, *messages: MessageSpec) -> TaskLakehouse:
    return TaskLakehouse(folder, msgspec.structs.replace(GAMES, messages=messages))


def test_a_mapped_message_is_a_row_with_its_other_fields_as_columns(tmp_path: Path) -> None:
    lakehouse = mapped(tmp_path, a_mapping())

    outcome = lakehouse.run(numbered([a_lap(lakehouse), a_record(1)]))

    row, ours = outcome.rows(KART_TABLE)
    expected = {
        "event_id": "AABB",
        "event_time": datetime(2026, 1, 1, 12, tzinfo=UTC),
        "event_name": "qualifying",
        "game_name": "Kart Rumble",
        "gamer_id": "7",
        "amount": 2.5,
        "driver": {"number": 7, "team": "Red"},
        "sector_ms": [30_100, 31_200],
        "tyre_wear": [("front_left", 0.25)],
    }
    assert {name: row[name] for name in expected} == expected
    assert "lap_id" not in row
    assert ours["event_name"] == "level_completed"
    assert outcome.count(SILVER_EVENTS) == 2
    assert not outcome.dead_letters


def test_a_value_that_cannot_be_computed_is_null_and_concerns_its_row_only(tmp_path: Path) -> None:
    lakehouse = mapped(tmp_path, a_mapping(event_time="CAST(pace AS TIMESTAMP)"))
    good = a_lap(lakehouse, pace="2026-01-01T11:30:00Z")

    outcome = lakehouse.run(numbered([a_lap(lakehouse, pace="fast"), good]))

    assert dict(outcome.dead_letters) == {"no_event_time": 1}
    assert [row["event_time"].hour for row in outcome.rows(KART_TABLE)] == [11]


@pytest.mark.parametrize(
    ("mapping", "word"),
    [
        (None, "a column of the platform"),
        (a_mapping("pitwall.v2.Lap"), "a column of the platform"),
        (a_mapping(gamer_id="pilot.name"), "does not fit its schema"),
        (a_mapping(event_time="finished_at_ms"), "event_time is BIGINT; write make_timestamp"),
        (a_mapping(gamer_id="driver"), "gamer_id is STRUCT"),
        (a_mapping(gamer_id="sector_ms"), "gamer_id is BIGINT[]"),
        (a_mapping(event_id="lap_id"), "event_id is BLOB"),
        (a_mapping(amount="pace"), "amount is VARCHAR"),
    ],
)
def test_without_a_mapping_that_fits_messages_are_dead_letters(
    mapping: MessageSpec | None, word: str, tmp_path: Path
) -> None:
    lakehouse = mapped(tmp_path, *([mapping] if mapping else []))

    outcome = lakehouse.run(numbered([a_lap(lakehouse, eventDate="2026"), a_record(1)]))

    assert dict(outcome.dead_letters) == {"incompatible_schema": 1}
    assert word in outcome.rows(DEAD_LETTERS)[0]["detail"]
    assert outcome.count(KART_TABLE) == 1


def test_the_first_mapping_that_fits_a_version_of_the_schema_counts(tmp_path: Path) -> None:
    lakehouse = mapped(tmp_path, a_mapping(gamer_id="licence"), a_mapping())
    newer = LAP.replace("string pace = 9;", "string pace = 9;\n  string licence = 10;")

    outcome = lakehouse.run(numbered([a_lap(lakehouse), a_lap(lakehouse, newer, 51, licence="L-7", lapId="qrw=")]))

    assert [row["gamer_id"] for row in outcome.rows(KART_TABLE)] == ["7", "L-7"]


def test_a_rule_may_name_a_field_of_a_mapped_message_before_its_first_record(tmp_path: Path) -> None:
    lakehouse = mapped(tmp_path / "lake", a_mapping())
    lakehouse.register(50, compiled(LAP))
    store = Store(Location(uri=(tmp_path / "lake").as_uri()))

    columns = known_columns(tmp_path / "games.yaml", store, [], lakehouse.contract.messages)

    assert {"sector_ms", "driver"} <= set(columns.names)


@pytest.mark.parametrize(
    ("sql", "problem"),
    [("laps +", "is not a SQL expression"), ("(SELECT 1)", "queries another table"), ("now()", "not deterministic")],
)
def test_sql_that_is_no_expression_of_one_row_is_rejected_at_the_start(sql: str, problem: str, tmp_path: Path) -> None:
    contract = {
        "games": [{"name": "kart", "match": ["Kart"]}],
        "messages": [{"message": "pitwall.v1.Lap", "columns": {"event_time": sql}}],
    }
    file = tmp_path / "games.yaml"
    file.write_bytes(msgspec.yaml.encode(contract))

    with pytest.raises(ContractError, match=f"'event_time' of the message pitwall.v1.Lap .*{problem}"):
        load_event_contract(file)


def test_the_columns_that_can_be_mapped_are_those_that_all_events_share() -> None:
    assert {column.value for column in MappedColumn} == set(COMMON_SCHEMA.names) - {"kafka_partition", "kafka_offset"}
