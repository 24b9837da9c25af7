"""The ingest time of a row: the sender's if plausible, else Kafka's, and never later than the batch's planning."""

import time
from dataclasses import replace
from datetime import datetime, timedelta

import pyarrow as pa
import pytest

from gamelake.model.naming import SILVER_EVENTS
from gamelake.streaming.files.arrivals.notifications import ObjectName
from gamelake.streaming.files.coordinates import ObjectPosition, object_coordinates
from gamelake.streaming.kafka.consumers import arrival_times
from gamelake.streaming.plan import NO_CLOCK
from tests.unit.streaming.tasks import KART_TABLE, NOON, KafkaTaskRecord, TaskLakehouse, a_record, compiled, framed

_MILLISECOND, _HOUR = timedelta(milliseconds=1), timedelta(hours=1)


def _microseconds(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000_000 + moment.microsecond


def _ingest_time(lakehouse: TaskLakehouse, record: KafkaTaskRecord, clock: int = NO_CLOCK) -> datetime:
    outcome = lakehouse.run([record], clock=clock)
    (row,) = outcome.rows(KART_TABLE)
    (common,) = outcome.rows(SILVER_EVENTS)
    assert row["ingest_time"] == common["ingest_time"]
    found: datetime = row["ingest_time"]
    return found


def test_an_event_without_ingest_time_has_the_time_at_which_kafka_took_its_record_in(lakehouse: TaskLakehouse) -> None:
    assert _ingest_time(lakehouse, a_record(1, eventTime="2026-01-03T11:00:00Z")) == NOON


def test_a_message_without_the_field_has_an_ingest_time_too(lakehouse: TaskLakehouse) -> None:
    schema = compiled(
        'syntax = "proto3"; import "google/protobuf/timestamp.proto";'
        " message Event { string game_name = 1; google.protobuf.Timestamp event_time = 2; }"
    )
    lakehouse.register(90, schema)
    value = framed({"gameName": "Kart Rumble", "eventTime": "2026-01-01T11:59:00Z"}, schema, 90)

    assert _ingest_time(lakehouse, KafkaTaskRecord(value=value)) == NOON


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (NOON - _HOUR, NOON - _HOUR),
        # Kafka's timestamps are cut to milliseconds.
        (NOON + _MILLISECOND / 2, NOON + _MILLISECOND / 2),
        (NOON + _MILLISECOND, NOON),
        (NOON + 40 * _HOUR, NOON),
        (NOON - timedelta(days=400), NOON - timedelta(days=400)),
        (NOON - timedelta(days=401), NOON),
    ],
)
def test_a_sender_cannot_claim_an_implausible_ingest_time(
    given: datetime, kept: datetime, lakehouse: TaskLakehouse
) -> None:
    assert _ingest_time(lakehouse, a_record(1, ingestTime=given.isoformat())) == kept


@pytest.mark.parametrize("extreme", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z"])
def test_the_extremes_of_a_protobuf_timestamp_are_implausible(extreme: str, lakehouse: TaskLakehouse) -> None:
    assert _ingest_time(lakehouse, a_record(1, ingestTime=extreme)) == NOON


def test_a_producer_whose_clock_is_ahead_cannot_move_the_ingest_time_beyond_the_planning_of_the_batch(
    lakehouse: TaskLakehouse,
) -> None:
    ahead = replace(a_record(1, eventTime="2026-01-02T12:00:00Z"), timestamp=NOON + 30 * _HOUR)
    clock = _microseconds(NOON)

    assert _ingest_time(lakehouse, ahead, clock=clock) == NOON
    assert _ingest_time(lakehouse, replace(ahead, timestamp=NOON + timedelta(minutes=14)), clock=clock) == (
        NOON + timedelta(minutes=14)
    ), "a driver whose clock is minutes behind must not change when events arrived"


def test_a_record_without_a_timestamp_arrives_when_it_is_read() -> None:
    before = time.time_ns() // 1000
    given = pa.array([None, -1, 0, 1, 2**63 - 1], pa.int64())

    found = arrival_times(given).cast(pa.int64()).to_pylist()

    assert found[3] == 1000
    assert all(before - 1000 <= found[place] <= time.time_ns() // 1000 for place in (0, 1, 2, 4))


def test_events_of_a_file_arrive_when_its_notification_does_however_often_they_are_read(
    lakehouse: TaskLakehouse,
) -> None:
    value = a_record(1).value
    position = ObjectPosition(partition=2, offset=7, index=0, microseconds=_microseconds(NOON + _MILLISECOND))
    where = object_coordinates([(position, ObjectName(bucket="b", key="k", version="", etag=""))])
    moment = NOON + timedelta(microseconds=int(where.microseconds[0]) - _microseconds(NOON))
    record = KafkaTaskRecord(
        value=value, partition=int(where.partitions[0]), offset=int(where.first_offsets[0]), timestamp=moment
    )

    first = _ingest_time(lakehouse, record, clock=_microseconds(NOON + _HOUR))
    again = _ingest_time(lakehouse, record, clock=_microseconds(NOON + 2 * _HOUR))

    assert first == again == NOON + _MILLISECOND
