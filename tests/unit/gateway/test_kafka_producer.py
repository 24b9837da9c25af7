"""A request is acknowledged if and only if Kafka has confirmed all of its records."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from threading import Event
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from gamelake.kafka import KafkaAccess
from services.gateway import kafka_producer
from services.gateway.errors import UnavailableError
from services.gateway.kafka_producer import EventProducer, QueueLimits, Record, size_of

LIMITS = QueueLimits(bytes=10 * size_of([{"key": "k", "value": b"v"}]), timeout=timedelta(seconds=5))
FAILURE = object()


class FakeProducer:
    """Kafka's client: queues at most `takes` records of a batch, and reports what a test puts into `reports`."""

    def __init__(self, _settings: dict[str, Any]) -> None:
        self.takes = 1000
        self.failure: KafkaException | None = None
        self.closed = Event()
        self.waiting: list[Callable[[object, object], None]] = []
        self.reports: list[object] = []
        made.append(self)

    def produce_batch(self, _topic: str, batch: list[Any], on_delivery: Callable[[object, object], None]) -> int:
        taken = min(self.takes, len(batch))
        self.waiting += [on_delivery] * taken
        return taken

    def poll(self, _seconds: float) -> int:
        if self.failure is not None and not self.reports:
            raise self.failure
        reports, self.reports = self.reports, []
        for report in reports:
            self.waiting.pop(0)(report, None)
        return len(reports)

    def purge(self) -> None:
        self.reports = [FAILURE] * len(self.waiting)

    def __len__(self) -> int:
        """Records that have no report yet."""
        return len(self.waiting)

    def close(self) -> None:
        self.closed.set()


made: list[FakeProducer] = []


@pytest.fixture
def producer(monkeypatch: pytest.MonkeyPatch) -> EventProducer:
    monkeypatch.setattr(kafka_producer, "Producer", FakeProducer)
    made.clear()
    return EventProducer(KafkaAccess("nowhere:9092"), "events", LIMITS)


def records(count: int) -> list[Record]:
    return [{"key": "k", "value": b"v"} for _ in range(count)]


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, timeout=10))


async def is_done(sent: "asyncio.Future[None]") -> bool:
    """Return True if a request is settled after some polls of the client."""
    await asyncio.wait([sent], timeout=0.02)
    return sent.done()


def test_a_request_is_confirmed_with_the_last_of_its_records_and_not_before(producer: EventProducer) -> None:
    async def test() -> None:
        sent = asyncio.ensure_future(producer.send(records(3)))
        made[0].reports = [None, None]
        assert not await is_done(sent)
        assert producer.waiting_records == 3
        made[0].reports = [None]
        await sent
        assert producer.waiting_records == 0

    run(test())


@pytest.mark.parametrize("reports", [[FAILURE, None, None], [None, FAILURE, None], [None, None, FAILURE]])
def test_one_record_that_kafka_does_not_confirm_fails_its_request_and_no_other(
    producer: EventProducer, reports: list[object]
) -> None:
    async def test() -> None:
        first, second = (
            asyncio.ensure_future(producer.send(records(3))),
            asyncio.ensure_future(producer.send(records(1))),
        )
        await asyncio.sleep(0)
        made[0].reports = [*reports, None]
        with pytest.raises(UnavailableError):
            await first
        await second

    run(test())


def test_records_that_were_not_queued_fail_the_request_once_the_others_are_reported(producer: EventProducer) -> None:
    async def test() -> None:
        made[0].takes = 2
        sent = asyncio.ensure_future(producer.send(records(3)))
        assert not await is_done(sent)
        made[0].reports = [None, None]
        with pytest.raises(UnavailableError):
            await sent
        made[0].takes = 0
        with pytest.raises(UnavailableError):
            await producer.send(records(1))
        assert producer.waiting_records == 0

    run(test())


def test_records_of_a_cancelled_request_count_until_kafka_has_answered(producer: EventProducer) -> None:
    async def test() -> None:
        sent = asyncio.ensure_future(producer.send(records(8)))
        await asyncio.sleep(0)
        sent.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sent
        with pytest.raises(UnavailableError):
            producer.send(records(3))
        made[0].reports = [None] * 8
        await asyncio.sleep(0.02)
        assert producer.waiting_records == 0

    run(test())


def test_after_a_fatal_error_waiting_requests_fail_and_a_new_producer_takes_the_next_ones(
    producer: EventProducer,
) -> None:
    async def test() -> None:
        first, second = (asyncio.ensure_future(producer.send(records(count))) for count in (3, 1))
        await asyncio.sleep(0)
        made[0].failure = KafkaException(KafkaError(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, "fatal", fatal=True))
        for sent in (first, second):
            with pytest.raises(UnavailableError):
                await sent
        assert producer.waiting_records == 0
        third = asyncio.ensure_future(producer.send(records(2)))
        await asyncio.sleep(0)
        made[1].reports = [None, None]
        await third
        assert await asyncio.to_thread(made[0].closed.wait, 5)
        assert not made[1].closed.is_set()

    run(test())
