"""What waits: bounded, in order, and in a file that outlives the process."""

import os
import subprocess
import sys
import threading
from collections import deque
from datetime import timedelta
from pathlib import Path

import pytest

from services.sdk import BufferFileError, BufferFullError, BufferLimits, Client, Options, Overflow, Reply
from services.sdk.batches import Form, Parcel
from services.sdk.journal import Journal
from tests.unit.sdk.fake_gateway import (
    PATIENCE,
    QUICK,
    WHEN_ASKED,
    FakeGateway,
    Request,
    Told,
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
    gateway, told = FakeGateway(), Told()

    with client(gateway, told, options(size=1000)) as sending:
        for event in numbers(0, 10):
            sending.send(event)
        with pytest.raises(BufferFullError):
            sending.send(b"one too many")
        assert sending.flush(PATIENCE)
        sending.send(b"there is room again")
        assert sending.flush(PATIENCE)

    assert told.accepted == [*numbers(0, 10), b"there is room again"]
    assert (sending.figures().turned_away, sending.figures().dropped) == (1, 0)


def test_a_full_buffer_drops_the_oldest_if_it_is_told_to() -> None:
    gateway, told = FakeGateway(), Told()

    with client(gateway, told, options(size=1000, overflow=Overflow.DROP_OLDEST)) as sending:
        for event in numbers(0, 25):
            sending.send(event)
        with pytest.raises(BufferFullError):
            sending.send(bytes(2000))
        assert sending.flush(PATIENCE)

    assert told.accepted == numbers(15, 25)
    assert (sending.figures().turned_away, sending.figures().dropped) == (1, 15)


def test_what_is_on_its_way_is_never_dropped() -> None:
    asked, go_on = threading.Event(), threading.Event()

    def slow(request: Request) -> Reply:
        asked.set()
        go_on.wait(20)
        return accept(request)

    gateway, told = FakeGateway(deque([slow])), Told()
    with client(gateway, told, options(size=1000, overflow=Overflow.DROP_OLDEST)) as sending:
        for event in numbers(0, 10):
            sending.send(event)
        flushing = threading.Thread(target=sending.flush, args=(PATIENCE,))
        flushing.start()
        assert asked.wait(20)
        with pytest.raises(BufferFullError):
            sending.send(numbers(0, 1)[0])
        go_on.set()
        flushing.join()

    assert told.accepted == numbers(0, 10)


def test_who_has_no_room_may_wait_for_it() -> None:
    gateway, told = FakeGateway(), Told()

    with client(gateway, told, options(size=1000)) as sending:
        for event in numbers(0, 10):
            sending.send(event)
        assert not sending.await_room(100, AT_ONCE)
        assert sending.flush(PATIENCE)
        assert sending.await_room(100, AT_ONCE)


def test_what_was_not_settled_is_sent_by_the_next_client_in_its_order(tmp_path: Path) -> None:
    file, told = tmp_path / "events", Told()
    away = FakeGateway(always=unreachable)
    with client(away, Told(), options(file)) as sending:
        sending.send_packed(b"\x01a\x01b", 2)
        for event in numbers(0, 5):
            sending.send(event)
        sending.send({"event_id": "x", "event_name": "tap"})
        assert not sending.close(timedelta(milliseconds=50))

    gateway = FakeGateway()
    with client(gateway, told, options(file)) as sending:
        sending.send(b"new")
        assert sending.flush(PATIENCE)

    assert told.accepted == [b"a", b"b", *numbers(0, 5), b'{"event_id":"x","event_name":"tap"}', b"new"]
    assert {event for request in away.requests for event in request.events} <= set(told.accepted)
    assert file.stat().st_size == 8


def test_what_was_settled_is_not_sent_by_the_next_client(tmp_path: Path) -> None:
    file, told = tmp_path / "events", Told()
    first = FakeGateway(deque([accept]), always=refuse(503))
    with client(first, Told(), options(file)) as sending:
        for event in numbers(0, 5):
            sending.send(event)
        assert sending.flush(PATIENCE)
        for event in numbers(5, 9):
            sending.send(event)
        sending.close(timedelta(milliseconds=50))

    with client(FakeGateway(), told, options(file)) as sending:
        assert sending.flush(PATIENCE)

    assert told.accepted == numbers(5, 9)


def test_the_file_is_for_one_client_and_for_its_owner(tmp_path: Path) -> None:
    file = tmp_path / "events"

    with client(FakeGateway(), Told(), options(file)):
        assert file.stat().st_mode & 0o777 == 0o600
        with pytest.raises(BufferFileError):
            Client(FakeGateway(), Told(), options(file))  # type: ignore[arg-type] # it never gets so far


@pytest.mark.parametrize("content", [b"a diary, not a buffer", b"G\x00"])
def test_another_file_is_not_touched(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "diary"
    file.write_bytes(content)

    with pytest.raises(BufferFileError):
        Journal(file)

    assert file.read_bytes() == content


def parcels(count: int) -> list[Parcel]:
    return [Parcel(number, Form.JSON, 1, b"%d" % number * 20) for number in range(1, count + 1)]


def test_a_file_that_ends_anywhere_gives_what_was_whole(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    journal, ends = Journal(whole), [8]
    for parcel in parcels(4):
        journal.hand_over(parcel)
        ends.append(whole.stat().st_size)
    journal.close()
    content = whole.read_bytes()

    for size in range(len(content) + 1):
        torn = tmp_path / "torn"
        torn.write_bytes(content[:size])
        reopened = Journal(torn)
        found = reopened.waiting()
        reopened.hand_over(Parcel(99, Form.JSON, 1, b"later"))
        reopened.close()
        again = Journal(torn)
        assert list(found) == parcels(sum(end <= size for end in ends[1:]))
        assert again.waiting() == (*found, Parcel(99, Form.JSON, 1, b"later"))
        again.close()


def test_a_flipped_bit_ends_what_is_believed(tmp_path: Path) -> None:
    file = tmp_path / "events"
    journal = Journal(file)
    for parcel in parcels(4):
        journal.hand_over(parcel)
    journal.close()
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)

    reopened = Journal(file)

    assert 0 < len(reopened.waiting()) < 4
    assert list(reopened.waiting()) == parcels(len(reopened.waiting()))
    reopened.close()


def test_what_is_settled_does_not_fill_the_file(tmp_path: Path) -> None:
    file = tmp_path / "events"
    journal = Journal(file)
    oldest = Parcel(1, Form.PROTOBUF, 1, b"\x01o")
    journal.hand_over(oldest)

    for ticket in range(2, 302):
        passing = Parcel(ticket, Form.PROTOBUF, 1, bytes(10_000))
        journal.hand_over(passing)
        journal.settle([passing])

    assert file.stat().st_size < 1_200_000
    journal.close()
    reopened = Journal(file)
    assert reopened.waiting() == (oldest,)
    reopened.settle([oldest])
    assert file.stat().st_size == 8
    reopened.close()


def test_a_disk_that_is_full_refuses_an_event_and_spoils_no_other(tmp_path: Path) -> None:
    file = tmp_path / "events"
    script = f"""
import resource, signal
from pathlib import Path
from services.sdk import BufferFileError
from services.sdk.journal import Journal
from services.sdk.batches import Form, Parcel
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
journal = Journal(Path({str(file)!r}))
journal.hand_over(Parcel(1, Form.JSON, 1, b"small"))
try:
    journal.hand_over(Parcel(2, Form.JSON, 1, bytes(1000)))
except BufferFileError:
    journal.hand_over(Parcel(3, Form.JSON, 1, b"small too"))
"""
    subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, "PYTHONPATH": str(Path.cwd())})

    journal = Journal(file)

    assert [parcel.payload for parcel in journal.waiting()] == [b"small", b"small too"]
    journal.close()


def test_what_was_taken_survives_kill_9(tmp_path: Path) -> None:
    file, told = tmp_path / "events", Told()
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

    with client(FakeGateway(), told, options(file)) as sending:
        assert sending.flush(PATIENCE)

    assert ended.returncode == -9
    assert told.accepted == [b"%03d" % number for number in range(300)]
