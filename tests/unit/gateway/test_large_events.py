"""Large events and bodies are refused in time: before Kafka refuses them, and before they fill the memory."""

import pytest

from services.gateway.errors import BodyTooLargeError, EventRejection, Reason
from services.gateway.json_events import JsonEvents
from services.gateway.kafka_producer import MAX_VALUE_BYTES, Record
from services.gateway.preparation import PreparedBatch
from tests.unit.gateway.events import submitted

MIB = 2**20


def record(size: int) -> Record:
    return {"key": "a-player", "value": bytes(size)}


def test_an_event_too_large_for_kafka_is_rejected_by_index() -> None:
    small, large = record(10), record(MAX_VALUE_BYTES + 1)
    earlier = EventRejection(1, Reason.WRONG_TYPE, "event_id")

    prepared = PreparedBatch([small, large, small], [earlier], []).without_large_records()

    assert prepared.records == [small, small]
    assert prepared.rejections == [earlier, EventRejection(2, Reason.TOO_LARGE)]


def test_events_up_to_the_limit_are_unchanged() -> None:
    prepared = PreparedBatch([record(MAX_VALUE_BYTES)], [], [])

    assert prepared.without_large_records() is prepared
    assert PreparedBatch([], [], []).without_large_records().records == []


@pytest.mark.parametrize("piece", [b"{},", b"[],", b"[[", b"0,"])
def test_a_body_of_very_many_values_is_refused_before_it_is_parsed(piece: bytes) -> None:
    body = b'{"events":[' + piece * (2 * MIB // len(piece))

    with pytest.raises(BodyTooLargeError):
        JsonEvents(submitted()).split(body, 5000)
