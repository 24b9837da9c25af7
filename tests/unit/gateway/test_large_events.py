"""What is too large is refused in time: events that Kafka would never take, bodies that memory would not."""

import pytest

from services.gateway.errors import Reason, Rejection, TooLargeError
from services.gateway.json_events import JsonEvents
from services.gateway.kafka_producer import LARGEST_VALUE_BYTES, Record
from services.gateway.preparation import Ready
from tests.unit.gateway.events import submitted

MIB = 2**20


def record(size: int) -> Record:
    return {"key": "a-player", "value": bytes(size)}


def test_an_event_that_kafka_would_never_take_is_rejected_by_its_place() -> None:
    small, large = record(10), record(LARGEST_VALUE_BYTES + 1)
    earlier = Rejection(1, Reason.WRONG_TYPE, "event_id")

    ready = Ready([small, large, small], [earlier], []).without_large_records()

    assert ready.records == [small, small]
    assert ready.rejections == [earlier, Rejection(2, Reason.TOO_LARGE)]


def test_events_that_kafka_takes_stay_as_they_are() -> None:
    ready = Ready([record(LARGEST_VALUE_BYTES)], [], [])

    assert ready.without_large_records() is ready
    assert Ready([], [], []).without_large_records().records == []


@pytest.mark.parametrize("piece", [b"{},", b"[],", b"[[", b"0,"])
def test_a_body_of_very_many_values_is_refused_before_one_is_made(piece: bytes) -> None:
    body = b'{"events":[' + piece * (2 * MIB // len(piece))

    with pytest.raises(TooLargeError):
        JsonEvents(submitted()).split(body, 5000)
