"""With random faults of network and process each buffered event is settled once, in order."""

import random
from collections import deque
from datetime import timedelta
from pathlib import Path

import pytest

from services.sdk import BatchLimits, BufferLimits, Compression, Options, Reply
from services.sdk.batches import EventFormat, EventGroup, delimited
from services.sdk.journal import Journal
from tests.unit.sdk.fake_gateway import (
    PATIENCE,
    QUICK,
    FakeGateway,
    Outcomes,
    Request,
    Respond,
    accept,
    client,
    refuse,
    unreachable,
)

SEEDS = range(40)


def accepted_without_a_response(request: Request) -> Reply:
    """The gateway has the events, and its response is lost."""
    accept(request)
    return unreachable(request)


def only_few(request: Request) -> Reply:
    """Accept at most 4 events per request."""
    return accept(request) if len(request.events) <= 4 else refuse(413)(request)


RESPONSES: tuple[Respond, ...] = (
    accept,
    only_few,
    unreachable,
    accepted_without_a_response,
    refuse(503),
    refuse(429),
    refuse(408),
)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_event_is_settled_once_and_in_order(seed: int, tmp_path: Path) -> None:
    chance, outcomes = random.Random(seed), Outcomes()
    gateway = FakeGateway(deque(chance.choices(RESPONSES, k=30)))
    options = Options(
        batch=BatchLimits(events=chance.choice((1, 7, 50)), wait=timedelta(milliseconds=1)),
        backoff=QUICK,
        buffer=BufferLimits(file=tmp_path / "buffer" if seed % 2 else None),
        compression=chance.choice(list(Compression)),
    )
    sent: list[bytes] = []

    with client(gateway, outcomes, options) as sending:
        while len(sent) < 120:
            some = [f"{len(sent) + number:04}".encode() for number in range(chance.choice((1, 1, 1, 9)))]
            sending.send_delimited(b"".join(map(delimited, some)), len(some))
            sent += some
        assert sending.flush(PATIENCE)

    assert outcomes.accepted == sent
    assert sending.pending == 0
    assert list(dict.fromkeys(gateway.seen)) == sent


@pytest.mark.parametrize("seed", SEEDS)
def test_a_truncated_file_has_an_earlier_state(seed: int, tmp_path: Path) -> None:
    chance, file = random.Random(seed), tmp_path / "buffer"
    journal, ticket = Journal(file), 0
    waiting: list[EventGroup] = []
    moments = [(file.stat().st_size, list(waiting))]
    for _ in range(chance.randrange(60)):
        if waiting and chance.random() < 0.4:
            batch = chance.randint(1, len(waiting))
            journal.settle(waiting[:batch])
            waiting = waiting[batch:]
        else:
            ticket += 1
            waiting.append(
                EventGroup(ticket, chance.choice(list(EventFormat)), 1, chance.randbytes(chance.randrange(200)))
            )
            journal.append(waiting[-1])
        size = file.stat().st_size
        # The states of a longer file are lost with a truncation.
        moments = [moment for moment in moments if moment[0] <= size] + [(size, list(waiting))]
    journal.close()
    cut = chance.randint(8, file.stat().st_size)
    file.write_bytes(file.read_bytes()[:cut])

    reopened = Journal(file)

    assert list(reopened.waiting()) == [state for size, state in moments if size <= cut][-1]
    reopened.close()
