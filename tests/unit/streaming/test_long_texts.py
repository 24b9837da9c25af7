"""An event that has come past the gateway with a text that is too long is a dead letter that names the field."""

from pathlib import Path
from typing import Any

import pytest

from gamelake.contract.games import GamesContract, TextLengths
from gamelake.contract.messages import MappedColumn, MessageSpec
from gamelake.model.naming import SILVER_EVENTS
from tests.unit.streaming.tasks import (
    KART,
    KART_TABLE,
    YETI,
    YETI_TABLE,
    KafkaTaskRecord,
    TaskLakehouse,
    a_record,
    an_event,
    compiled,
    framed,
    numbered,
)

LENGTHS = TextLengths(default=40, fields={"event_params.device_id": 36, "attributes": 50})
CONTRACT = GamesContract(games=(KART, YETI), lengths=LENGTHS)

# Each text of the event by its path, as the change that gives the event this text.
TEXTS: dict[str, Any] = {
    "event_name": lambda text: {"eventName": text},
    "gamer_id": lambda text: {"gamerId": text},
    "session_id": lambda text: {"sessionId": text},
    "event_params.device_id": lambda text: {"eventParams": {"deviceId": text}},
    "purchase.product_id": lambda text: {"purchase": {"productId": text}},
    "experiment_ids": lambda text: {"experimentIds": ["short", text]},
    "attributes": lambda text: {"attributes": {"short": "short", "other": text}},
    "error.code": lambda text: {"error": {"code": text}},
}


@pytest.mark.parametrize("path", TEXTS)
def test_an_event_with_a_text_over_its_limit_is_a_dead_letter_and_its_neighbours_are_rows(
    path: str, tmp_path: Path
) -> None:
    limit = LENGTHS.of(path)
    longest = a_record(3, **TEXTS[path]("x" * limit))
    # A euro sign takes three bytes.
    longer = [a_record(3, **TEXTS[path](text)) for text in ("x" * (limit + 1), "€" * (limit // 3 + 1))]
    records = numbered([longest, longer[0], longer[1], longest, a_record(1, gameName="Yeti Ski"), longest])

    outcome = TaskLakehouse(tmp_path, CONTRACT).run(records)

    letters = outcome.rows("dead_letters/events")
    detail = f"{path} has more than {limit} bytes (lengths in contracts/games.yaml)"
    assert [(row["offset"], row["reason"], row["detail"], row["value"]) for row in letters] == [
        (offset, "too_long", detail, records[offset].value) for offset in (1, 2)
    ]
    assert [row["kafka_offset"] for row in outcome.rows(KART_TABLE)] == [0, 3, 5]
    assert (outcome.count(YETI_TABLE), outcome.count(SILVER_EVENTS)) == (1, 4)


def test_an_event_with_several_problems_is_one_dead_letter(tmp_path: Path) -> None:
    long = "x" * 60
    records = numbered([a_record(3, eventName=long, gamerId=long), a_record(3, eventName=long, gameName="Unknown")])

    outcome = TaskLakehouse(tmp_path, CONTRACT).run(records)

    assert outcome.dead_letters == {"too_long": 1, "unroutable": 1}
    assert outcome.count(SILVER_EVENTS) == 0


def test_of_a_mapped_message_the_columns_that_all_events_share_are_limited(tmp_path: Path) -> None:
    text = """
      syntax = "proto3"; package studio; import "google/protobuf/timestamp.proto";
      message Happened {
        string kind = 1; google.protobuf.Timestamp event_time = 2; string game_name = 3; string event_id = 4;
        string story = 5;
      }
    """
    mapped = MessageSpec(message="studio.Happened", columns={MappedColumn.EVENT_NAME: "kind"})
    lakehouse = TaskLakehouse(tmp_path, GamesContract(games=(KART, YETI), lengths=LENGTHS, messages=(mapped,)))
    lakehouse.register(70, compiled(text))
    common = {name: an_event()[name] for name in ("eventTime", "gameName", "eventId")}
    events = [{"kind": kind, "story": "x" * 5_000, **common} for kind in ("short", "x" * 60)]

    outcome = lakehouse.run(numbered([KafkaTaskRecord(value=framed(event, compiled(text), 70)) for event in events]))

    assert outcome.dead_letters == {"too_long": 1}
    assert [row["event_name"] for row in outcome.rows(KART_TABLE)] == ["short"]
    assert outcome.rows("dead_letters/events")[0]["detail"].startswith("event_name has more than 40 bytes")
