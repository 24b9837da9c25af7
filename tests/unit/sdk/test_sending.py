"""What the client sends, and what it makes of the answers."""

import json
import threading
import time
import uuid
from collections import deque
from datetime import UTC, datetime, timedelta

import pytest

from services.sdk import Backoff, BatchLimits, Client, ClosedError, Options, Packing, Rejection, Reply
from services.sdk.batches import Form, Parcel, delimited
from services.sdk.delivery import Clock, Exchange, InterruptedDeliveryError
from tests.unit.sdk.fake_gateway import (
    AT_ONCE,
    CREDENTIALS,
    PATIENCE,
    QUICK,
    WHEN_ASKED,
    Answer,
    FakeGateway,
    Request,
    TimedGateway,
    Told,
    accept,
    answer,
    client,
    refuse,
    unreachable,
)


def messages(count: int, size: int = 40) -> list[bytes]:
    return [f"{number:04}".encode().ljust(size, b".") for number in range(count)]


def send_all(sending: Client, events: list[bytes]) -> None:
    for event in events:
        sending.send(event)
    assert sending.flush(PATIENCE)


def test_events_are_sent_in_batches_in_their_order() -> None:
    gateway, told = FakeGateway(), Told()
    options = Options(batch=BatchLimits(events=10, wait=timedelta(hours=1)), backoff=QUICK)

    with client(gateway, told, options) as sending:
        send_all(sending, messages(25))

    assert gateway.seen == told.accepted == messages(25)
    assert all(len(request.events) <= 10 for request in gateway.requests)
    assert sending.figures().accepted == sending.figures().taken == 25


def test_a_batch_goes_when_its_first_event_has_waited_long_enough() -> None:
    arrived = threading.Event()

    def notice(request: Request) -> Reply:
        arrived.set()
        return accept(request)

    with client(FakeGateway(always=notice), Told(), Options(batch=AT_ONCE)) as sending:
        sending.send(b"x")
        assert arrived.wait(20)


def test_a_batch_has_no_more_bytes_than_it_may() -> None:
    gateway = FakeGateway()
    options = Options(batch=BatchLimits(bytes=1000, wait=timedelta(hours=1)), packing=Packing.NONE)

    with client(gateway, Told(), options) as sending:
        send_all(sending, messages(50, 100))

    assert max(len(request.body) for request in gateway.requests) <= 1000
    assert len(gateway.seen) == 50


def test_mappings_travel_as_json_with_an_id_that_they_keep() -> None:
    gateway, told = FakeGateway(deque([unreachable, refuse(503)])), Told()
    moment = datetime(2026, 11, 21, 12, tzinfo=UTC)

    with client(gateway, told) as sending:
        sending.send({"event_name": "tap", "event_time": moment, "gamer_id": "p"})
        assert sending.flush(PATIENCE)

    sent = [json.loads(request.events[0]) for request in gateway.requests]
    assert len(sent) == 3
    assert len({each["event_id"] for each in sent}) == 1
    assert uuid.UUID(sent[0]["event_id"]).version == 4
    assert sent[0]["event_time"] == "2026-11-21T12:00:00+00:00"


@pytest.mark.parametrize("value", [object(), datetime(2026, 1, 1), float("nan")])  # noqa: DTZ001 # a time without its offset is what is tested
def test_what_json_has_no_word_for_is_the_callers_error(value: object) -> None:
    with client(FakeGateway(), Told()) as sending, pytest.raises((TypeError, ValueError)):
        sending.send({"event_name": value})


def test_both_forms_may_be_mixed_and_no_request_mixes_them() -> None:
    gateway, told = FakeGateway(), Told()

    with client(gateway, told) as sending:
        for event in (b"one", {"event_name": "two"}, {"event_name": "three"}, b"four"):
            sending.send(event)
        assert sending.flush(PATIENCE)

    assert [request.headers["content-type"].rpartition("/")[2] for request in gateway.requests] == [
        "x-protobuf",
        "json",
        "x-protobuf",
    ]
    assert len(told.accepted) == 4


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
        lambda _: answer(200, {"accepted": 0, "rejected": []}),
        lambda _: answer(200, {"accepted": 3, "rejected": [1]}),
        lambda _: answer(200, [3]),
    ],
)
def test_what_may_go_better_is_sent_again(first: Answer) -> None:
    gateway, told = FakeGateway(deque([first, first, first])), Told()

    with client(gateway, told) as sending:
        send_all(sending, messages(3))

    assert [request.events for request in gateway.requests] == [tuple(messages(3))] * 4
    assert [(outcome.accepted, outcome.attempts) for outcome in told.outcomes] == [(3, 4)]
    assert sending.figures().retries == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 415])
def test_what_will_not_go_better_is_told_and_not_sent_again(status: int) -> None:
    gateway, told = FakeGateway(deque([refuse(status)])), Told()

    with client(gateway, told) as sending:
        send_all(sending, messages(2))
        sending.send(b"next")
        assert sending.flush(PATIENCE)

    refusal = told.outcomes[0].refusal
    assert refusal is not None
    assert (refusal.status, refusal.text) == (status, f"no: {status}")
    assert told.outcomes[0].events() == tuple(messages(2))
    assert told.accepted == [b"next"]
    assert sending.figures().refused == 2


def test_rejected_events_are_told_and_never_sent_again() -> None:
    rejected = [{"index": 1, "reason": "no_event_time", "field": "event_time"}]
    gateway, told = FakeGateway(deque([lambda _: answer(200, {"accepted": 2, "rejected": rejected})])), Told()

    with client(gateway, told) as sending:
        send_all(sending, messages(3))

    assert told.outcomes[0].rejections == (Rejection(1, "no_event_time", "event_time"),)
    assert told.accepted == [messages(3)[0], messages(3)[2]]
    assert len(gateway.requests) == 1


@pytest.mark.parametrize("together", [1, 8])
def test_a_batch_that_is_too_large_is_divided_until_it_fits(together: int) -> None:
    def small_ones_only(request: Request) -> Reply:
        return accept(request) if len(request.events) <= 3 else refuse(413)(request)

    gateway, told, events = FakeGateway(always=small_ones_only), Told(), messages(16)

    with client(gateway, told) as sending:
        for start in range(0, 16, together):
            some = events[start : start + together]
            sending.send_packed(b"".join(delimited(event) for event in some), together)
        assert sending.flush(PATIENCE)

    assert told.accepted == events
    places = [
        (parcel.ticket, parcel.first + place)
        for outcome in told.outcomes
        for parcel in outcome.parcels
        for place in range(parcel.count)
    ]
    assert places == [(1 + number // together, number % together) for number in range(16)]


def test_one_event_that_is_too_large_is_told_and_the_others_pass() -> None:
    def no_large_one(request: Request) -> Reply:
        return refuse(413)(request) if any(len(event) > 100 for event in request.events) else accept(request)

    gateway, told = FakeGateway(always=no_large_one), Told()

    with client(gateway, told) as sending:
        send_all(sending, [b"a", b"b" * 500, b"c", b"d"])

    assert told.accepted == [b"a", b"c", b"d"]
    assert [outcome.events() for outcome in told.outcomes if outcome.refusal is not None] == [(b"b" * 500,)]


@pytest.mark.parametrize("packing", list(Packing))
def test_a_request_is_signed_as_it_travels(packing: Packing) -> None:
    now = datetime.now(UTC).timestamp()
    gateway, told = TimedGateway(now), Told()

    with client(gateway, told, Options(batch=WHEN_ASKED, packing=packing)) as sending:
        send_all(sending, messages(3))

    assert told.accepted == messages(3)
    assert gateway.requests[0].headers.get("content-encoding") == (None if packing is Packing.NONE else "gzip")


@pytest.mark.parametrize("hours", [-30, 30])
def test_a_device_whose_clock_is_wrong_learns_the_time_from_the_first_answer(hours: int) -> None:
    true_time = datetime.now(UTC).timestamp()
    gateway, told = TimedGateway(true_time), Told()
    sending = Client(gateway, CREDENTIALS, Options(batch=WHEN_ASKED), told.note, lambda: true_time + hours * 3600)

    with sending:
        send_all(sending, messages(2))
        send_all(sending, messages(2))

    assert [outcome.attempts for outcome in told.outcomes] == [2, 1]
    assert told.accepted == messages(2) * 2
    assert abs(sending.now() - true_time) < 2


def test_a_wrong_secret_is_not_taken_for_a_wrong_clock_for_ever() -> None:
    gateway, told = TimedGateway(1_000_000_000.0), Told()
    gateway.now = datetime.now(UTC).timestamp()
    sending = Client(
        gateway, CREDENTIALS.__class__("key-1", "wrong" * 8), Options(batch=WHEN_ASKED), told.note, lambda: 0.0
    )

    with sending:
        send_all(sending, messages(1))

    assert len(gateway.requests) == 2
    assert told.outcomes[0].refusal is not None


def test_it_never_asks_again_before_the_gateway_wants_it() -> None:
    date = "Sat, 21 Nov 2026 12:00:00 GMT"
    gateway = FakeGateway(deque([refuse(429, retry_after="7"), refuse(503, retry_after=date), unreachable]))
    waits: list[float] = []

    def remember(seconds: float) -> bool:
        waits.append(seconds)
        return False

    exchange = Exchange(
        transport=gateway,
        credentials=CREDENTIALS,
        options=Options(backoff=QUICK),
        clock=Clock(time.time),
        pause=remember,
    )
    outcomes = list(exchange.deliver([Parcel(1, Form.JSON, 1, b"{}")]))

    assert [outcome.attempts for outcome in outcomes] == [4]
    assert 7 <= waits[0] < 7.1
    assert max(waits[1:]) < 0.1


def test_waits_grow_up_to_a_limit_and_no_two_clients_wait_alike() -> None:
    backoff = Backoff(first=timedelta(seconds=1), longest=timedelta(seconds=30))
    waits: list[float] = []

    def remember(seconds: float) -> bool:
        waits.append(seconds)
        return len(waits) == 1000

    exchange = Exchange(
        transport=FakeGateway(always=unreachable),
        credentials=CREDENTIALS,
        options=Options(backoff=backoff),
        clock=Clock(time.time),
        pause=remember,
    )
    with pytest.raises(InterruptedDeliveryError):
        list(exchange.deliver([Parcel(1, Form.JSON, 1, b"{}")]))

    assert [wait <= limit for wait, limit in zip(waits, (1, 2, 4, 8, 16, 30), strict=False)] == [True] * 6
    assert 25 < max(waits) <= 30
    assert min(waits[6:]) < 5


def test_a_game_that_fails_at_an_outcome_does_not_stop_the_client(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_outcome: object) -> None:
        raise RuntimeError("the game's own")

    gateway = FakeGateway()

    with Client(gateway, CREDENTIALS, Options(batch=WHEN_ASKED), fail) as sending:
        send_all(sending, messages(1))
        send_all(sending, messages(1))

    assert len(gateway.requests) == 2
    assert "the game's own" in caplog.text


def test_a_client_that_was_closed_takes_nothing_and_lets_go_of_its_connection() -> None:
    gateway = FakeGateway()
    sending = client(gateway, Told())

    assert sending.close(PATIENCE)

    assert gateway.closed.is_set()
    with pytest.raises(ClosedError):
        sending.send(b"x")


def test_many_threads_may_send_at_once() -> None:
    gateway, told = FakeGateway(), Told()

    with client(gateway, told, Options(batch=BatchLimits(events=64), backoff=QUICK)) as sending:
        threads = [threading.Thread(target=send_all, args=(sending, messages(200))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert sorted(told.accepted) == sorted(messages(200) * 8)
