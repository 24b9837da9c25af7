"""An incompatible schema rejects only that game's records of that schema."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from gamelake.contract.games import GamesContract, GameSpec
from gamelake.delta.appends import columns_of
from gamelake.delta.columns import conflicts
from gamelake.model.naming import BRONZE_EVENTS, DEAD_LETTERS, SILVER_EVENTS, game_of
from tests.support.logged import logged
from tests.unit.streaming.tasks import (
    KART_TABLE,
    YETI_TABLE,
    KafkaTaskRecord,
    TaskLakehouse,
    a_record,
    an_event,
    compiled,
    framed,
    numbered,
)

_HEAD = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
message GameEvent {
  string event_id = 1;
  string event_name = 2;
  google.protobuf.Timestamp event_time = 3;
  string game_name = 5;
  string gamer_id = 6;
"""
_SCORE_AS_NUMBER = _HEAD + "  int32 score = 20;\n}\n"
_SCORE_AS_TEXT = _HEAD + "  string score = 20;\n}\n"
_CLASHING_CASE = _HEAD + "  Params event_params = 20;\n}\nmessage Params { string Gamer_Id = 1; }\n"


def _record(lakehouse: TaskLakehouse, text: str, under: int, **changes: object) -> KafkaTaskRecord:
    schema = compiled(text)
    lakehouse.register(under, schema)
    return KafkaTaskRecord(value=framed(an_event(**changes), schema, under))


def test_the_first_type_of_a_new_column_is_kept(lakehouse: TaskLakehouse) -> None:
    number = _record(lakehouse, _SCORE_AS_NUMBER, 50, score=5)
    text = _record(lakehouse, _SCORE_AS_TEXT, 51, score="five")
    other_game = _record(lakehouse, _SCORE_AS_TEXT, 51, score="six", gameName="Yeti Ski")

    outcome = lakehouse.run(numbered([number, text, other_game, number, a_record(1)]))

    assert [row["score"] for row in outcome.rows(KART_TABLE)] == [5, 5, None]
    assert [row["score"] for row in outcome.rows(YETI_TABLE)] == ["six"]
    (letter,) = outcome.rows(DEAD_LETTERS)
    assert (letter["offset"], letter["reason"]) == (1, "incompatible_schema")
    assert letter["detail"] == "column score is int64 in the table and string in the record"


def test_the_type_in_the_table_takes_precedence(lakehouse: TaskLakehouse) -> None:
    records = [_record(lakehouse, _SCORE_AS_NUMBER, 50, score=5), _record(lakehouse, _SCORE_AS_TEXT, 51, score="five")]
    table = pa.schema([("score", pa.string()), ("event_date", pa.date32())])

    outcome = lakehouse.run(numbered(records), schemas={KART_TABLE: table})

    assert [row["score"] for row in outcome.rows(KART_TABLE)] == ["five"]
    assert dict(outcome.dead_letters) == {"incompatible_schema": 1}


@pytest.mark.parametrize("games", [1, 5, 20])
def test_tasks_run_twice_for_conflicts_in_any_number_of_tables(
    tmp_path: Path, games: int, caplog: pytest.LogCaptureFixture
) -> None:
    specs = tuple(GameSpec(name=f"game_{number}", match=(f"Game {number}",)) for number in range(games))
    lakehouse = TaskLakehouse(tmp_path, GamesContract(games=specs))
    tasks = [
        [
            replace(_record(lakehouse, text, under, score=score, gameName=f"Game {number}"), partition=partition)
            for number in range(games)
        ]
        for partition, (text, under, score) in enumerate([(_SCORE_AS_NUMBER, 50, 5), (_SCORE_AS_TEXT, 51, "five")])
    ]

    decision = lakehouse.decide([numbered(records) for records in tasks])

    assert decision.dead_letters == {"incompatible_schema": games}
    assert len([entry for entry in decision.tables if game_of(entry.table)]) == games
    assert len(logged(caplog, "tasks_run_again")) == 1


def test_a_table_whose_columns_another_program_has_changed_refuses_the_batch_alone(lakehouse: TaskLakehouse) -> None:
    changed = pa.schema([("event_name", pa.int64())])

    decision = lakehouse.decide([[a_record(1)]], schemas={SILVER_EVENTS: changed})

    refused = {entry.table for entry in decision.tables if conflicts(changed, columns_of(entry))}
    assert SILVER_EVENTS in refused
    assert {entry.table: entry.rows for entry in decision.tables} == dict.fromkeys(
        (BRONZE_EVENTS, SILVER_EVENTS, KART_TABLE), 1
    )


@pytest.mark.parametrize("batch_records", [1, 10])
def test_the_verdict_is_the_same_in_every_batch_of_a_task(batch_records: int, lakehouse: TaskLakehouse) -> None:
    number = _record(lakehouse, _SCORE_AS_NUMBER, 50, score=5)
    text = _record(lakehouse, _SCORE_AS_TEXT, 51, score="five")

    outcome = lakehouse.run(numbered([number, text] * 3), batch_records=batch_records)

    assert dict(outcome.dead_letters) == {"incompatible_schema": 3}
    assert outcome.count(KART_TABLE) == 3


def test_fields_that_differ_by_case_only_make_no_table(lakehouse: TaskLakehouse) -> None:
    outcome = lakehouse.run([_record(lakehouse, _CLASHING_CASE, 50)])

    assert dict(outcome.dead_letters) == {"incompatible_schema": 1}
    assert outcome.game_tables == set()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('syntax = "proto3"; message Chat { string text = 1; }', "no event_time"),
        ('syntax = "proto3"; message Empty { }', "no event_time"),
        (_HEAD + "  int64 kafka_offset = 20;\n}\n", "a column of the platform"),
        (_HEAD.replace("string event_name", "int32 event_name") + "}\n", "column event_name"),
    ],
)
def test_a_message_that_is_no_event_becomes_a_dead_letter(text: str, word: str, lakehouse: TaskLakehouse) -> None:
    lakehouse.register(50, compiled(text))

    outcome = lakehouse.run(numbered([KafkaTaskRecord(value=b"\0\0\0\0\x32\0"), a_record(1)]))

    assert dict(outcome.dead_letters) == {"incompatible_schema": 1}
    assert word in outcome.rows(DEAD_LETTERS)[0]["detail"]
    assert outcome.count(KART_TABLE) == 1


def test_fields_grow_at_every_depth_within_a_batch(lakehouse: TaskLakehouse) -> None:
    small = _HEAD + "  Part part = 20;\n  repeated Part parts = 21;\n  map<string, Part> named = 22;\n}\n"
    one, two = small + "message Part { int32 a = 1; }", small + "message Part { string b = 2; int32 a = 1; }"
    first = _record(lakehouse, one, 50, part={"a": 1}, parts=[{"a": 1}], named={"k": {"a": 1}})
    second = _record(lakehouse, two, 51, part={"b": "x"}, parts=[{"b": "x"}], named={"k": {"b": "x"}})

    rows = lakehouse.run(numbered([first, second, first])).rows(KART_TABLE)

    old, new = {"a": 1, "b": None}, {"a": 0, "b": "x"}
    assert [row["part"] for row in rows] == [old, new, old]
    assert [row["parts"] for row in rows] == [[old], [new], [old]]
    assert [row["named"] for row in rows] == [[("k", old)], [("k", new)], [("k", old)]]


def test_empty_fields_reject_no_event(lakehouse: TaskLakehouse) -> None:
    text = _HEAD.replace("message", 'import "google/protobuf/empty.proto";\nmessage', 1)
    text += "  repeated google.protobuf.Empty marks = 20;\n  Hollow hollow = 21;\n}\nmessage Hollow {}\n"

    outcome = lakehouse.run([_record(lakehouse, text, 50, marks=[{}, {}], hollow={})])

    assert outcome.count(KART_TABLE) == 1
    assert not {"marks", "hollow"} & outcome.columns(KART_TABLE)
