"""What the client sends, and which events, keys and addresses are the caller's errors."""

import json
import threading
import uuid
from collections import deque
from datetime import UTC, datetime, timedelta

import pytest

from services.sdk import BatchLimits, ClosedError, Compression, Credentials, HttpTransport, Options, Reply
from tests.unit.sdk.fake_gateway import (
    AT_ONCE,
    KEY,
    PATIENCE,
    QUICK,
    SECRET,
    WHEN_ASKED,
    FakeGateway,
    Outcomes,
    Request,
    TimedGateway,
    accept,
    client,
    messages,
    refuse,
    send_all,
    unreachable,
)


def test_events_are_sent_in_batches_in_their_order() -> None:
    gateway, outcomes = FakeGateway(), Outcomes()
    options = Options(batch=BatchLimits(events=10, wait=timedelta(hours=1)), backoff=QUICK)

    with client(gateway, outcomes, options) as sending:
        send_all(sending, messages(25))

    assert gateway.seen == outcomes.accepted == messages(25)
    assert all(len(request.events) <= 10 for request in gateway.requests)
    assert sending.stats().accepted == sending.stats().buffered == 25


def test_a_batch_is_sent_when_its_oldest_event_has_waited_long_enough() -> None:
    arrived = threading.Event()

    def notice(request: Request) -> Reply:
        arrived.set()
        return accept(request)

    with client(FakeGateway(always=notice), Outcomes(), Options(batch=AT_ONCE)) as sending:
        sending.send(b"x")
        assert arrived.wait(20)


def test_a_batch_is_bounded_in_bytes() -> None:
    gateway = FakeGateway()
    options = Options(batch=BatchLimits(bytes=1000, wait=timedelta(hours=1)), compression=Compression.NONE)

    with client(gateway, Outcomes(), options) as sending:
        send_all(sending, messages(50, 100))

    assert max(len(request.body) for request in gateway.requests) <= 1000
    assert len(gateway.seen) == 50


def test_mappings_are_sent_as_json_with_an_id_that_stays_the_same() -> None:
    gateway, outcomes = FakeGateway(deque([unreachable, refuse(503)])), Outcomes()
    moment = datetime(2026, 11, 21, 12, tzinfo=UTC)

    with client(gateway, outcomes) as sending:
        sending.send({"event_name": "tap", "event_time": moment, "gamer_id": "p"})
        assert sending.flush(PATIENCE)

    sent = [json.loads(request.events[0]) for request in gateway.requests]
    assert len(sent) == 3
    assert len({each["event_id"] for each in sent}) == 1
    assert uuid.UUID(sent[0]["event_id"]).version == 4
    assert sent[0]["event_time"] == "2026-11-21T12:00:00+00:00"


@pytest.mark.parametrize("value", [object(), datetime(2026, 1, 1), float("nan"), "\ud800"])  # noqa: DTZ001 # a time without its offset is what is tested
def test_a_value_without_json_representation_is_the_callers_error(value: object) -> None:
    with client(FakeGateway(), Outcomes()) as sending, pytest.raises((TypeError, ValueError)):
        sending.send({"event_name": value})


def test_a_client_takes_both_formats_and_a_request_has_one() -> None:
    gateway, outcomes = FakeGateway(), Outcomes()

    with client(gateway, outcomes) as sending:
        for event in (b"one", {"event_name": "two"}, {"event_name": "three"}, b"four"):
            sending.send(event)
        assert sending.flush(PATIENCE)

    assert [request.headers["content-type"].rpartition("/")[2] for request in gateway.requests] == [
        "x-protobuf",
        "json",
        "x-protobuf",
    ]
    assert len(outcomes.accepted) == 4


@pytest.mark.parametrize("key", ["", "archery-1\n", "a b", "k\u00e9y", "\ud800", "k" * 65, "a\r\nx: y"])
def test_a_key_id_that_no_gateway_has_is_the_callers_error(key: str) -> None:
    with pytest.raises(ValueError, match="a key's id"):
        Credentials(key, SECRET)


@pytest.mark.parametrize("secret", ["", f"{SECRET}\n", f" {SECRET}", "\ud800" * 32])
def test_a_secret_that_no_gateway_has_is_the_callers_error_and_not_shown(secret: str) -> None:
    with pytest.raises(ValueError, match="a secret") as error:
        Credentials(KEY, secret)

    assert not secret or secret not in str(error.value)


@pytest.mark.parametrize("url", ["", "events.example.com", "ftp://events", "https://", "http://[", "http://a\nb"])
def test_an_address_that_no_gateway_has_is_the_callers_error(url: str) -> None:
    with pytest.raises(ValueError, match="address"):
        HttpTransport(url, timedelta(seconds=1))


def test_a_wait_that_is_longer_than_any_timer_does_not_end_the_client() -> None:
    gateway, outcomes = FakeGateway(), Outcomes()
    options = Options(batch=BatchLimits(wait=timedelta.max), backoff=QUICK)

    with client(gateway, outcomes, options) as sending:
        send_all(sending, messages(1))

    assert outcomes.accepted == messages(1)


@pytest.mark.parametrize("compression", list(Compression))
def test_a_request_is_signed_over_its_compressed_body(compression: Compression) -> None:
    now = datetime.now(UTC).timestamp()
    gateway, outcomes = TimedGateway(now), Outcomes()

    with client(gateway, outcomes, Options(batch=WHEN_ASKED, compression=compression)) as sending:
        send_all(sending, messages(3))

    assert outcomes.accepted == messages(3)
    assert gateway.requests[0].headers.get("content-encoding") == (None if compression is Compression.NONE else "gzip")


def test_a_closed_client_refuses_events_and_has_closed_its_connection() -> None:
    gateway = FakeGateway()
    sending = client(gateway, Outcomes())

    assert sending.close(PATIENCE)

    assert gateway.closed.is_set()
    with pytest.raises(ClosedError):
        sending.send(b"x")


def test_many_threads_may_send_at_once() -> None:
    gateway, outcomes = FakeGateway(), Outcomes()

    with client(gateway, outcomes, Options(batch=BatchLimits(events=64), backoff=QUICK)) as sending:
        threads = [threading.Thread(target=send_all, args=(sending, messages(200))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert sorted(outcomes.accepted) == sorted(messages(200) * 8)
