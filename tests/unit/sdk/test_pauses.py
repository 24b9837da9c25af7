"""The client waits longer and longer before it sends a batch again."""

import time
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from services.sdk import Backoff, Credentials, Options, Reply
from services.sdk.batches import EventFormat, EventGroup, delimited
from services.sdk.delivery import Delivery, GatewayClock, InterruptedDeliveryError
from tests.unit.sdk.fake_gateway import (
    CREDENTIALS,
    KEY,
    QUICK,
    FakeGateway,
    Outcomes,
    TimedGateway,
    accept,
    messages,
    refuse,
    unreachable,
)

AN_EVENT = EventGroup(1, EventFormat.JSON, 1, b"{}")


@dataclass(slots=True)
class Waits:
    """Remembers pauses instead of waiting; ends the delivery after a number of them."""

    most: int | None = None
    seconds: list[float] = field(default_factory=list)

    def __call__(self, seconds: float) -> bool:
        """See `Delivery`."""
        self.seconds.append(seconds)
        return len(self.seconds) == self.most


def a_delivery(
    gateway: FakeGateway | TimedGateway,
    waits: Waits,
    options: Options | None = None,
    credentials: Credentials = CREDENTIALS,
    clock: GatewayClock | None = None,
) -> Delivery:
    return Delivery(
        transport=gateway,
        credentials=credentials,
        options=options or Options(),
        clock=clock or GatewayClock(time.time),
        pause=waits,
    )


def test_the_pauses_while_a_key_is_denied_get_longer_than_those_of_an_outage() -> None:
    waits = Waits(1000)
    delivery = a_delivery(FakeGateway(always=refuse(401)), waits)
    with pytest.raises(InterruptedDeliveryError):
        list(delivery.deliver([AN_EVENT]))

    assert 250 < max(waits.seconds) <= 300
    assert delivery.stats.problem == "401: no: 401"


def test_a_wrong_secret_is_taken_for_a_wrong_clock_only_once() -> None:
    gateway = TimedGateway(datetime.now(UTC).timestamp())
    waits = Waits(1)
    delivery = a_delivery(gateway, waits, credentials=Credentials(KEY, "wrong" * 8), clock=GatewayClock(lambda: 0.0))
    with pytest.raises(InterruptedDeliveryError):
        list(delivery.deliver([AN_EVENT]))

    assert len(gateway.requests) == 2
    assert len(waits.seconds) == 1
    assert delivery.stats.problem == "401: not now"


def test_a_retry_never_comes_before_retry_after() -> None:
    date = "Sat, 21 Nov 2026 12:00:00 GMT"
    gateway = FakeGateway(deque([refuse(429, retry_after="7"), refuse(503, retry_after=date), unreachable]))
    waits = Waits()
    delivery = a_delivery(gateway, waits, options=Options(backoff=QUICK))
    outcomes = list(delivery.deliver([AN_EVENT]))

    assert [outcome.attempts for outcome in outcomes] == [4]
    assert 7 <= waits.seconds[0] < 7.1
    assert max(waits.seconds[1:]) < 0.1


def test_waits_grow_up_to_a_limit_and_are_random() -> None:
    backoff = Backoff(first=timedelta(seconds=1), longest=timedelta(seconds=30))
    waits = Waits(1000)
    delivery = a_delivery(FakeGateway(always=unreachable), waits, options=Options(backoff=backoff))
    with pytest.raises(InterruptedDeliveryError):
        list(delivery.deliver([AN_EVENT]))

    assert [wait <= limit for wait, limit in zip(waits.seconds, (1, 2, 4, 8, 16, 30), strict=False)] == [True] * 6
    assert 25 < max(waits.seconds) <= 30
    assert min(waits.seconds[6:]) < 5


@pytest.mark.parametrize(
    "reply",
    [
        Reply(200, {"date": "Sat, 01 Jan 0001 00:00:00 -0000"}, b"[" * 100_000),
        Reply(200, {"date": "x" * 10_000, "retry-after": "9" * 10_000}, b'{"accepted":1e999,"rejected":[]}'),
        Reply(200, {}, b'{"accepted":2,"rejected":[{"index":[],"reason":{}}]}'),
        Reply(400, {}, b"\xff"),
        Reply(999, {}, b""),
        Reply(0, {}, b"null"),
    ],
)
def test_no_response_ends_the_client(reply: Reply, caplog: pytest.LogCaptureFixture) -> None:
    gateway, outcomes = FakeGateway(deque([lambda _: reply, accept])), Outcomes()
    waits = Waits()
    delivery = a_delivery(gateway, waits, options=Options(backoff=QUICK))
    outcomes.all += delivery.deliver([EventGroup(1, EventFormat.PROTOBUF, 3, b"".join(map(delimited, messages(3))))])

    assert outcomes.accepted == messages(3)
    assert len(waits.seconds) == 1
    assert "Traceback" not in caplog.text
