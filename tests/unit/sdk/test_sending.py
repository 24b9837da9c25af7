"""What the client sends, and how it reacts to responses."""

import json
import threading
import time
import uuid
from collections import deque
from datetime import UTC, datetime, timedelta

import pytest

from services.sdk import Backoff, BatchLimits, Client, ClosedError, Compression, Options, Rejection, Reply
from services.sdk.batches import EventFormat, EventGroup, delimited
from services.sdk.delivery import Delivery, GatewayClock, InterruptedDeliveryError
from tests.unit.sdk.fake_gateway import (
    AT_ONCE,
    CREDENTIALS,
    PATIENCE,
    QUICK,
    WHEN_ASKED,
    FakeGateway,
    Outcomes,
    Request,
    Respond,
    TimedGateway,
    accept,
    client,
    refuse,
    respond,
    unreachable,
)


def messages(count: int, size: int = 40) -> list[bytes]:
    return [f"{number:04}".encode().ljust(size, b".") for number in range(count)]


def send_all(sending: Client, events: list[bytes]) -> None:
    for event in events:
        sending.send(event)
    assert sending.flush(PATIENCE)


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


@pytest.mark.parametrize(
    "first",
    [
        unreachable,
        refuse(503),
        refuse(429),
        refuse(408),
        refuse(500),
        refuse(502),
        refuse(302),
        lambda _: Reply(200, {}, b"<html>Welcome to our hotel</html>"),
        lambda _: respond(200, {"accepted": 0, "rejected": []}),
        lambda _: respond(200, {"accepted": 3, "rejected": [1]}),
        lambda _: respond(200, [3]),
    ],
)
def test_a_batch_is_sent_again_after_a_temporary_failure(first: Respond) -> None:
    gateway, outcomes = FakeGateway(deque([first, first, first])), Outcomes()

    with client(gateway, outcomes) as sending:
        send_all(sending, messages(3))

    assert [request.events for request in gateway.requests] == [tuple(messages(3))] * 4
    assert [(outcome.accepted, outcome.attempts) for outcome in outcomes.all] == [(3, 4)]
    assert sending.stats().retries == 3


def test_a_batch_is_not_refused_between_gateways_whose_clocks_differ_by_more_than_the_window() -> None:
    true_time, outcomes = datetime.now(UTC).timestamp(), Outcomes()
    right, ahead = (
        lambda request, each=each: each.post(request.body, request.headers)
        for each in (TimedGateway(true_time), TimedGateway(true_time + 720))
    )
    gateway = FakeGateway(deque([ahead, right, ahead]), always=right)

    with client(gateway, outcomes) as sending:
        send_all(sending, messages(2))

    assert outcomes.accepted == messages(2)
    assert [outcome.attempts for outcome in outcomes.all] == [5]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 415])
def test_a_refused_batch_is_reported_and_not_sent_again(status: int) -> None:
    gateway, outcomes = FakeGateway(deque([refuse(status)])), Outcomes()

    with client(gateway, outcomes) as sending:
        send_all(sending, messages(2))
        sending.send(b"next")
        assert sending.flush(PATIENCE)

    refusal = outcomes.all[0].refusal
    assert refusal is not None
    assert (refusal.status, refusal.text) == (status, f"no: {status}")
    assert outcomes.all[0].events() == tuple(messages(2))
    assert outcomes.accepted == [b"next"]
    assert sending.stats().refused == 2


def test_rejected_events_are_reported_and_not_sent_again() -> None:
    rejected = [{"index": 1, "reason": "no_event_time", "field": "event_time"}]
    gateway, outcomes = FakeGateway(deque([lambda _: respond(200, {"accepted": 2, "rejected": rejected})])), Outcomes()

    with client(gateway, outcomes) as sending:
        send_all(sending, messages(3))

    assert outcomes.all[0].rejections == (Rejection(1, "no_event_time", "event_time"),)
    assert outcomes.accepted == [messages(3)[0], messages(3)[2]]
    assert len(gateway.requests) == 1


@pytest.mark.parametrize("together", [1, 8])
def test_a_batch_that_is_too_large_is_divided_until_it_fits(together: int) -> None:
    def small_ones_only(request: Request) -> Reply:
        return accept(request) if len(request.events) <= 3 else refuse(413)(request)

    gateway, outcomes, events = FakeGateway(always=small_ones_only), Outcomes(), messages(16)

    with client(gateway, outcomes) as sending:
        for start in range(0, 16, together):
            some = events[start : start + together]
            sending.send_delimited(b"".join(delimited(event) for event in some), together)
        assert sending.flush(PATIENCE)

    assert outcomes.accepted == events
    places = [
        (group.ticket, group.first + place)
        for outcome in outcomes.all
        for group in outcome.groups
        for place in range(group.count)
    ]
    assert places == [(1 + number // together, number % together) for number in range(16)]


def test_a_single_too_large_event_is_reported_and_the_others_are_accepted() -> None:
    def no_large_one(request: Request) -> Reply:
        return refuse(413)(request) if any(len(event) > 100 for event in request.events) else accept(request)

    gateway, outcomes = FakeGateway(always=no_large_one), Outcomes()

    with client(gateway, outcomes) as sending:
        send_all(sending, [b"a", b"b" * 500, b"c", b"d"])

    assert outcomes.accepted == [b"a", b"c", b"d"]
    assert [outcome.events() for outcome in outcomes.all if outcome.refusal is not None] == [(b"b" * 500,)]


@pytest.mark.parametrize("compression", list(Compression))
def test_a_request_is_signed_over_its_compressed_body(compression: Compression) -> None:
    now = datetime.now(UTC).timestamp()
    gateway, outcomes = TimedGateway(now), Outcomes()

    with client(gateway, outcomes, Options(batch=WHEN_ASKED, compression=compression)) as sending:
        send_all(sending, messages(3))

    assert outcomes.accepted == messages(3)
    assert gateway.requests[0].headers.get("content-encoding") == (None if compression is Compression.NONE else "gzip")


@pytest.mark.parametrize("hours", [-30, 30])
def test_a_device_with_a_wrong_clock_learns_the_time_from_the_first_response(hours: int) -> None:
    true_time = datetime.now(UTC).timestamp()
    gateway, outcomes = TimedGateway(true_time), Outcomes()
    sending = Client(gateway, CREDENTIALS, Options(batch=WHEN_ASKED), outcomes.add, lambda: true_time + hours * 3600)

    with sending:
        send_all(sending, messages(2))
        send_all(sending, messages(2))

    assert [outcome.attempts for outcome in outcomes.all] == [2, 1]
    assert outcomes.accepted == messages(2) * 2
    assert abs(sending.now() - true_time) < 2


def test_a_wrong_secret_is_taken_for_a_wrong_clock_only_once() -> None:
    gateway, outcomes = TimedGateway(1_000_000_000.0), Outcomes()
    gateway.now = datetime.now(UTC).timestamp()
    sending = Client(
        gateway, CREDENTIALS.__class__("key-1", "wrong" * 8), Options(batch=WHEN_ASKED), outcomes.add, lambda: 0.0
    )

    with sending:
        send_all(sending, messages(1))

    assert len(gateway.requests) == 2
    assert outcomes.all[0].refusal is not None


def test_a_retry_never_comes_before_retry_after() -> None:
    date = "Sat, 21 Nov 2026 12:00:00 GMT"
    gateway = FakeGateway(deque([refuse(429, retry_after="7"), refuse(503, retry_after=date), unreachable]))
    waits: list[float] = []

    def remember(seconds: float) -> bool:
        waits.append(seconds)
        return False

    delivery = Delivery(
        transport=gateway,
        credentials=CREDENTIALS,
        options=Options(backoff=QUICK),
        clock=GatewayClock(time.time),
        pause=remember,
    )
    outcomes = list(delivery.deliver([EventGroup(1, EventFormat.JSON, 1, b"{}")]))

    assert [outcome.attempts for outcome in outcomes] == [4]
    assert 7 <= waits[0] < 7.1
    assert max(waits[1:]) < 0.1


def test_waits_grow_up_to_a_limit_and_are_random() -> None:
    backoff = Backoff(first=timedelta(seconds=1), longest=timedelta(seconds=30))
    waits: list[float] = []

    def remember(seconds: float) -> bool:
        waits.append(seconds)
        return len(waits) == 1000

    delivery = Delivery(
        transport=FakeGateway(always=unreachable),
        credentials=CREDENTIALS,
        options=Options(backoff=backoff),
        clock=GatewayClock(time.time),
        pause=remember,
    )
    with pytest.raises(InterruptedDeliveryError):
        list(delivery.deliver([EventGroup(1, EventFormat.JSON, 1, b"{}")]))

    assert [wait <= limit for wait, limit in zip(waits, (1, 2, 4, 8, 16, 30), strict=False)] == [True] * 6
    assert 25 < max(waits) <= 30
    assert min(waits[6:]) < 5


def test_a_failing_on_outcome_does_not_stop_the_client(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_outcome: object) -> None:
        raise RuntimeError("the game's own")

    gateway = FakeGateway()

    with Client(gateway, CREDENTIALS, Options(batch=WHEN_ASKED), fail) as sending:
        send_all(sending, messages(1))
        send_all(sending, messages(1))

    assert len(gateway.requests) == 2
    assert "the game's own" in caplog.text
    assert {vars(record)["event"] for record in caplog.records} == {"on_outcome_failed"}


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
