"""The client reacts to responses, and to faults of its own."""

from collections import deque
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import pytest

from services.sdk import Client, Options, Rejection, Reply
from services.sdk.batches import delimited
from tests.support.failing import failing
from tests.unit.sdk.fake_gateway import (
    CREDENTIALS,
    PATIENCE,
    WHEN_ASKED,
    FakeGateway,
    Outcomes,
    Request,
    Respond,
    TimedGateway,
    accept,
    client,
    messages,
    refuse,
    respond,
    send_all,
    unreachable,
)


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


@pytest.mark.parametrize("status", [400, 415])
def test_a_batch_whose_content_is_refused_is_reported_and_not_sent_again(status: int) -> None:
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


@pytest.mark.parametrize(
    "denied",
    [
        *(refuse(status) for status in (401, 402, 403, 404, 405, 407, 410, 421, 426, 451)),
        # A proxy's page, which says nothing about the events.
        *(lambda _, status=status: Reply(status, {}, b"<html>no</html>") for status in (400, 403, 404, 415)),
    ],
)
def test_events_outlive_a_key_or_an_address_that_is_wrong_for_a_while(
    denied: Respond, caplog: pytest.LogCaptureFixture
) -> None:
    gateway, outcomes = FakeGateway(deque([denied, denied, denied])), Outcomes()

    with client(gateway, outcomes) as sending:
        for number in range(10):
            sending.send_delimited(b"".join(delimited(event) for event in messages(100)), 100)
            assert sending.flush(PATIENCE), number

    assert outcomes.accepted == messages(100) * 10
    assert (sending.stats().refused, sending.stats().denied, sending.stats().problem) == (0, 3, "")
    assert [vars(record)["event"] for record in caplog.records] == ["events_wait"]


def test_bytes_that_are_no_messages_and_too_large_are_reported_and_do_not_end_the_client() -> None:
    gateway, outcomes = FakeGateway(deque([lambda _: respond(413, {"error": "too large"})])), Outcomes()
    gateway.always = lambda _: respond(200, {"accepted": 1, "rejected": []})

    with client(gateway, outcomes) as sending:
        sending.send_delimited(b"\x80\x80", 2)
        assert sending.flush(PATIENCE)
        send_all(sending, messages(1))

    assert [outcome.refusal is not None for outcome in outcomes.all] == [True, False]


def test_a_fault_of_the_client_itself_is_reported_and_the_events_are_sent_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    calls: list[object] = []

    class Broken(Mapping[str, str]):
        def __getitem__(self, name: str) -> str:
            raise RuntimeError(name)

        def __iter__(self) -> Iterator[str]:
            return iter(())

        def __len__(self) -> int:
            return 0

        def get(self, name: str, default: object = None) -> str:
            calls.append(default)
            raise RuntimeError(name)

    gateway, outcomes = FakeGateway(deque([lambda _: Reply(200, Broken(), b"")])), Outcomes()

    with client(gateway, outcomes) as sending:
        send_all(sending, messages(3))

    assert calls
    assert outcomes.accepted == messages(3)
    assert [vars(record)["event"] for record in caplog.records] == ["sending_failed"]


@pytest.mark.parametrize("error", [RuntimeError("a bug"), ValueError("x"), OverflowError(), MemoryError(), KeyError(1)])
def test_the_client_survives_any_error_of_its_transport_and_keeps_the_events(error: Exception) -> None:
    gateway, outcomes = FakeGateway(deque([failing(error)] * 2)), Outcomes()

    with client(gateway, outcomes) as sending:
        send_all(sending, messages(3))

    assert outcomes.accepted == messages(3)


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


@pytest.mark.parametrize("kind", [RuntimeError, SystemExit])
def test_a_failing_on_outcome_does_not_stop_the_client(
    kind: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    gateway = FakeGateway()

    with Client(gateway, CREDENTIALS, Options(batch=WHEN_ASKED), failing(kind("the game's own"))) as sending:
        send_all(sending, messages(1))
        send_all(sending, messages(1))

    assert len(gateway.requests) == 2
    assert "the game's own" in caplog.text
    assert {vars(record)["event"] for record in caplog.records} == {"on_outcome_failed"}
