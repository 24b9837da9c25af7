"""The buffer: bounded, in order, and in a file that outlives the process."""

import os
import subprocess
import sys
import threading
from collections import deque
from datetime import timedelta
from pathlib import Path

import pytest

from services.sdk import BufferFileError, BufferFullError, BufferLimits, Client, Options, Overflow, Reply
from services.sdk.batches import EventFormat, EventGroup
from services.sdk.journal import Journal
from tests.unit.sdk.fake_gateway import (
    PATIENCE,
    QUICK,
    WHEN_ASKED,
    FakeGateway,
    Outcomes,
    Request,
    accept,
    client,
    refuse,
    unreachable,
)

AT_ONCE = timedelta(0)


def options(file: Path | None = None, size: int = 10_000, overflow: Overflow = Overflow.REFUSE_NEWEST) -> Options:
    return Options(batch=WHEN_ASKED, backoff=QUICK, buffer=BufferLimits(bytes=size, overflow=overflow, file=file))


def numbers(first: int, last: int) -> list[bytes]:
    return [f"{number:099}".encode() for number in range(first, last)]


def test_a_full_buffer_refuses_the_newest() -> None:
    gateway, outcomes = FakeGateway(), Outcomes()

    with client(gateway, outcomes, options(size=1000)) as sending:
        for event in numbers(0, 10):
            sending.send(event)
        with pytest.raises(BufferFullError):
            sending.send(b"one too many")
        assert sending.flush(PATIENCE)
        sending.send(b"there is space again")
        assert sending.flush(PATIENCE)

    assert outcomes.accepted == [*numbers(0, 10), b"there is space again"]
    assert (sending.stats().overflowed, sending.stats().dropped) == (1, 0)


def test_a_full_buffer_drops_the_oldest_with_that_option() -> None:
    gateway, outcomes = FakeGateway(), Outcomes()

    with client(gateway, outcomes, options(size=1000, overflow=Overflow.DROP_OLDEST)) as sending:
        for event in numbers(0, 25):
            sending.send(event)
        with pytest.raises(BufferFullError):
            sending.send(bytes(2000))
        assert sending.flush(PATIENCE)

    assert outcomes.accepted == numbers(15, 25)
    assert (sending.stats().overflowed, sending.stats().dropped) == (1, 15)


def test_events_in_flight_are_never_dropped() -> None:
    asked, go_on = threading.Event(), threading.Event()

    def slow(request: Request) -> Reply:
        asked.set()
        go_on.wait(20)
        return accept(request)

    gateway, outcomes = FakeGateway(deque([slow])), Outcomes()
    with client(gateway, outcomes, options(size=1000, overflow=Overflow.DROP_OLDEST)) as sending:
        for event in numbers(0, 10):
            sending.send(event)
        flushing = threading.Thread(target=sending.flush, args=(PATIENCE,))
        flushing.start()
        assert asked.wait(20)
        with pytest.raises(BufferFullError):
            sending.send(numbers(0, 1)[0])
        go_on.set()
        flushing.join()

    assert outcomes.accepted == numbers(0, 10)


def test_a_caller_may_wait_for_space() -> None:
    gateway, outcomes = FakeGateway(), Outcomes()

    with client(gateway, outcomes, options(size=1000)) as sending:
        for event in numbers(0, 10):
            sending.send(event)
        assert not sending.wait_for_space(100, AT_ONCE)
        assert sending.flush(PATIENCE)
        assert sending.wait_for_space(100, AT_ONCE)


def test_unsettled_events_are_sent_by_the_next_client_in_order(tmp_path: Path) -> None:
    file, outcomes = tmp_path / "events", Outcomes()
    away = FakeGateway(always=unreachable)
    with client(away, Outcomes(), options(file)) as sending:
        sending.send_delimited(b"\x01a\x01b", 2)
        for event in numbers(0, 5):
            sending.send(event)
        sending.send({"event_id": "x", "event_name": "tap"})
        assert not sending.close(timedelta(milliseconds=50))

    gateway = FakeGateway()
    with client(gateway, outcomes, options(file)) as sending:
        sending.send(b"new")
        assert sending.flush(PATIENCE)

    assert outcomes.accepted == [b"a", b"b", *numbers(0, 5), b'{"event_id":"x","event_name":"tap"}', b"new"]
    assert {event for request in away.requests for event in request.events} <= set(outcomes.accepted)
    assert file.stat().st_size == 8


def test_settled_events_are_not_sent_by_the_next_client(tmp_path: Path) -> None:
    file, outcomes = tmp_path / "events", Outcomes()
    first = FakeGateway(deque([accept]), always=refuse(503))
    with client(first, Outcomes(), options(file)) as sending:
        for event in numbers(0, 5):
            sending.send(event)
        assert sending.flush(PATIENCE)
        for event in numbers(5, 9):
            sending.send(event)
        sending.close(timedelta(milliseconds=50))

    with client(FakeGateway(), outcomes, options(file)) as sending:
        assert sending.flush(PATIENCE)

    assert outcomes.accepted == numbers(5, 9)


def test_the_file_is_for_one_client_and_readable_by_its_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "events"

    with client(FakeGateway(), Outcomes(), options(file)):
        assert file.stat().st_mode & 0o777 == 0o600
        with pytest.raises(BufferFileError):
            Client(FakeGateway(), Outcomes(), options(file))  # type: ignore[arg-type] # it never gets so far


@pytest.mark.parametrize("content", [b"a diary, not a buffer", b"G\x00"])
def test_a_file_that_is_no_buffer_is_not_changed(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "diary"
    file.write_bytes(content)

    with pytest.raises(BufferFileError):
        Journal(file)

    assert file.read_bytes() == content


def groups(count: int) -> list[EventGroup]:
    return [EventGroup(number, EventFormat.JSON, 1, b"%d" % number * 20) for number in range(1, count + 1)]


def test_a_file_truncated_anywhere_gives_its_whole_records(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    journal, ends = Journal(whole), [8]
    for group in groups(4):
        journal.append(group)
        ends.append(whole.stat().st_size)
    journal.close()
    content = whole.read_bytes()

    for size in range(len(content) + 1):
        torn = tmp_path / "torn"
        torn.write_bytes(content[:size])
        reopened = Journal(torn)
        found = reopened.waiting()
        reopened.append(EventGroup(99, EventFormat.JSON, 1, b"later"))
        reopened.close()
        again = Journal(torn)
        assert list(found) == groups(sum(end <= size for end in ends[1:]))
        assert again.waiting() == (*found, EventGroup(99, EventFormat.JSON, 1, b"later"))
        again.close()


def test_records_after_a_flipped_bit_are_not_used(tmp_path: Path) -> None:
    file = tmp_path / "events"
    journal = Journal(file)
    for group in groups(4):
        journal.append(group)
    journal.close()
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)

    reopened = Journal(file)

    assert 0 < len(reopened.waiting()) < 4
    assert list(reopened.waiting()) == groups(len(reopened.waiting()))
    reopened.close()


def test_settled_events_do_not_fill_the_file(tmp_path: Path) -> None:
    file = tmp_path / "events"
    journal = Journal(file)
    oldest = EventGroup(1, EventFormat.PROTOBUF, 1, b"\x01o")
    journal.append(oldest)

    for ticket in range(2, 302):
        passing = EventGroup(ticket, EventFormat.PROTOBUF, 1, bytes(10_000))
        journal.append(passing)
        journal.settle([passing])

    assert file.stat().st_size < 1_200_000
    journal.close()
    reopened = Journal(file)
    assert reopened.waiting() == (oldest,)
    reopened.settle([oldest])
    assert file.stat().st_size == 8
    reopened.close()


def test_a_full_disk_refuses_an_event_and_does_not_affect_others(tmp_path: Path) -> None:
    file = tmp_path / "events"
    script = f"""
import resource, signal
from pathlib import Path
from services.sdk import BufferFileError
from services.sdk.journal import Journal
from services.sdk.batches import EventFormat, EventGroup
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
journal = Journal(Path({str(file)!r}))
journal.append(EventGroup(1, EventFormat.JSON, 1, b"small"))
try:
    journal.append(EventGroup(2, EventFormat.JSON, 1, bytes(1000)))
except BufferFileError:
    journal.append(EventGroup(3, EventFormat.JSON, 1, b"small too"))
"""
    subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, "PYTHONPATH": str(Path.cwd())})

    journal = Journal(file)

    assert [group.payload for group in journal.waiting()] == [b"small", b"small too"]
    journal.close()


def test_buffered_events_survive_sigkill(tmp_path: Path) -> None:
    file, outcomes = tmp_path / "events", Outcomes()
    script = f"""
import os, signal
from pathlib import Path
from services.sdk import BatchLimits, BufferLimits, Client, Credentials, Options, UnreachableError
class Away:
    def post(self, body, headers):
        raise UnreachableError
    def close(self): ...
sending = Client(Away(), Credentials("k", "s"), Options(buffer=BufferLimits(file=Path({str(file)!r}))))
for number in range(300):
    sending.send(b"%03d" % number)
os.kill(os.getpid(), signal.SIGKILL)
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], check=False, env={**os.environ, "PYTHONPATH": str(Path.cwd())}
    )

    with client(FakeGateway(), outcomes, options(file)) as sending:
        assert sending.flush(PATIENCE)

    assert ended.returncode == -9
    assert outcomes.accepted == [b"%03d" % number for number in range(300)]
