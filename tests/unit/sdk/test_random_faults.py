"""Whatever the network and the process do, each event that was taken is settled, in order, and none is made up."""

import random
from collections import deque
from datetime import timedelta
from pathlib import Path

import pytest

from services.sdk import BatchLimits, BufferLimits, Options, Packing, Reply
from services.sdk.batches import Form, Parcel, delimited
from services.sdk.journal import Journal
from tests.unit.sdk.fake_gateway import (
    PATIENCE,
    QUICK,
    Answer,
    FakeGateway,
    Request,
    Told,
    accept,
    client,
    refuse,
    unreachable,
)

SEEDS = range(40)


def taken_without_an_answer(request: Request) -> Reply:
    """The gateway has the events, and the answer is lost."""
    accept(request)
    return unreachable(request)


def only_few(request: Request) -> Reply:
    """A small gateway."""
    return accept(request) if len(request.events) <= 4 else refuse(413)(request)


MOODS: tuple[Answer, ...] = (
    accept,
    only_few,
    unreachable,
    taken_without_an_answer,
    refuse(503),
    refuse(429),
    refuse(408),
)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_event_is_settled_once_and_in_order(seed: int, tmp_path: Path) -> None:
    chance, told = random.Random(seed), Told()
    gateway = FakeGateway(deque(chance.choices(MOODS, k=30)))
    options = Options(
        batch=BatchLimits(events=chance.choice((1, 7, 50)), wait=timedelta(milliseconds=1)),
        backoff=QUICK,
        buffer=BufferLimits(file=tmp_path / "buffer" if seed % 2 else None),
        packing=chance.choice(list(Packing)),
    )
    sent: list[bytes] = []

    with client(gateway, told, options) as sending:
        while len(sent) < 120:
            some = [f"{len(sent) + number:04}".encode() for number in range(chance.choice((1, 1, 1, 9)))]
            sending.send_packed(b"".join(map(delimited, some)), len(some))
            sent += some
        assert sending.flush(PATIENCE)

    assert told.accepted == sent
    assert sending.waiting == 0
    assert list(dict.fromkeys(gateway.seen)) == sent


@pytest.mark.parametrize("seed", SEEDS)
def test_a_file_that_was_cut_anywhere_is_as_it_was_at_some_moment(seed: int, tmp_path: Path) -> None:
    chance, file = random.Random(seed), tmp_path / "buffer"
    journal, ticket = Journal(file), 0
    waiting: list[Parcel] = []
    moments = [(file.stat().st_size, list(waiting))]
    for _ in range(chance.randrange(60)):
        if waiting and chance.random() < 0.4:
            batch = chance.randint(1, len(waiting))
            journal.settle(waiting[:batch])
            waiting = waiting[batch:]
        else:
            ticket += 1
            waiting.append(Parcel(ticket, chance.choice(list(Form)), 1, chance.randbytes(chance.randrange(200))))
            journal.hand_over(waiting[-1])
        size = file.stat().st_size
        # A file that was cut has forgotten what it was.
        moments = [moment for moment in moments if moment[0] <= size] + [(size, list(waiting))]
    journal.close()
    cut = chance.randint(8, file.stat().st_size)
    file.write_bytes(file.read_bytes()[:cut])

    reopened = Journal(file)

    assert list(reopened.waiting()) == [state for size, state in moments if size <= cut][-1]
    reopened.close()
