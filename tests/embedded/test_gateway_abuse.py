"""Senders who break the rules are refused, at a cost that is bounded, and cost nobody else anything."""

import gzip
import http.client
import json
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import zstandard

from services.gateway.authentication import KEY_HEADER, TIMESTAMP_HEADER, sign
from tests.embedded.gateway import KEY, LIMITED_KEY, LIMITED_RATE, SECRET, Gateway, body_of, events
from tests.embedded.parcels import packed
from tests.embedded.rude_clients import await_closed, connections, head_of
from tools.embedded.ports import HOST

MIB = 2**20
CLIENTS = 300
MOST_MIB = 400
# What an allocator may do with the same memory.
NOISE_MIB = 16
SIGNED_SECONDS_AGO = 20
PRESSING_SECONDS = 8
BATCH = 50


@pytest.fixture(scope="module")
def gateway(open_gateway: Callable[..., Gateway]) -> Gateway:
    """The service, with small patience."""
    return open_gateway(INGEST_BODY_SECONDS="2", INGEST_SIGNATURE_WINDOW_SECONDS="15", INGEST_BURST_SECONDS="1")


def bombs() -> list[tuple[bytes, str]]:
    """Bodies that are small, and unpack to what is not."""
    objects = b'{"events":[' + b"{}," * 2_600_000 + b"{}]}"
    lists = b'{"events":[' + b"[" * 500_000 + b"]" * 500_000 + b"]}"
    zeros = bytes(256 * MIB)
    return [
        (gzip.compress(zeros), "gzip"),
        (zstandard.compress(zeros), "zstd"),
        (gzip.compress(objects), "gzip"),
        (zstandard.compress(objects), "zstd"),
        (zstandard.compress(lists), "zstd"),
    ]


@pytest.mark.parametrize(
    "said",
    [b"", b"POST /v1/events HTTP/1.1\r\nhost: x\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", head_of(100) + b"{"],
    ids=["nothing", "half a head", "another protocol", "half a body"],
)
def test_hundreds_of_clients_that_never_end_their_request_hold_up_nobody(gateway: Gateway, said: bytes) -> None:
    with connections(gateway, CLIENTS, said) as rude:
        accepted = gateway.send(body_of(events(20))).taken.accepted
        held = gateway.peak_mib()
        await_closed(rude)

    assert accepted == 20
    assert held < MOST_MIB


def test_bodies_that_are_on_their_way_fill_no_more_memory_than_they_may(gateway: Gateway) -> None:
    with connections(gateway, CLIENTS, head_of(MIB)) as rude:
        for each in rude:
            each.sendall(bytes(MIB - 1))
        held = gateway.peak_mib()
        await_closed(rude)

    assert held < MOST_MIB
    assert gateway.send(body_of(events(20))).taken.accepted == 20


def test_a_bomb_costs_no_more_than_the_limit(gateway: Gateway) -> None:
    replies = [gateway.send(bomb, content_encoding=encoding) for bomb, encoding in bombs() * 2]

    assert {reply.status for reply in replies} == {400, 413}
    assert gateway.peak_mib() < MOST_MIB


def test_an_event_that_kafka_would_never_take_is_named_and_holds_up_no_other(gateway: Gateway) -> None:
    batch = events(3)
    batch[1]["session_id"] = "x" * MIB

    reply = gateway.send(packed(body_of(batch), "gzip"), content_encoding="gzip")

    assert (reply.taken.accepted, reply.taken.rejected) == (2, [{"index": 1, "reason": "too_large"}])


def test_a_body_without_a_length_is_refused_over_the_limit_and_its_sender_sees_it(gateway: Gateway) -> None:
    timestamp = str(int(time.time()))
    headers = {"content-type": "application/json", KEY_HEADER: KEY, TIMESTAMP_HEADER: timestamp}
    connection = http.client.HTTPConnection(HOST, gateway.port, timeout=20)
    connection.request("POST", "/v1/events", iter([bytes(MIB)] * 4), headers, encode_chunked=True)

    answer = connection.getresponse()

    assert (answer.status, json.loads(answer.read())) == (413, {"error": f"a body may have {MIB} bytes"})
    connection.close()


def test_a_request_that_was_overheard_is_good_for_no_other_time(gateway: Gateway) -> None:
    body, then = body_of(events(1)), str(int(time.time()) - SIGNED_SECONDS_AGO)
    signature = sign(SECRET.encode(), then, body)

    late = gateway.send(body, gamelake_timestamp=then, gamelake_signature=signature)
    under_another_time = gateway.send(body, gamelake_signature=signature)

    assert (late.status, under_another_time.status) == (401, 401)


def test_a_flood_of_wrong_signatures_leaves_the_others_their_service(gateway: Gateway) -> None:
    body, before = body_of(events(100)), gateway.resident_mib()
    flood = partial(gateway.send, body, gamelake_signature="0" * 64)

    with ThreadPoolExecutor(8) as senders:
        wrong = [senders.submit(flood) for _ in range(1000)]
        good = [gateway.send(body_of(events(20))).taken.accepted for _ in range(20)]
        statuses = {each.result().status for each in wrong}

    assert statuses == {401}
    assert good == [20] * 20
    assert gateway.resident_mib() - before < NOISE_MIB


def test_a_game_over_its_rate_gets_its_rate_and_leaves_others_theirs(gateway: Gateway) -> None:
    over = partial(_send_for, gateway, PRESSING_SECONDS, LIMITED_KEY)
    while gateway.send(body_of(events(BATCH)), gamelake_key=LIMITED_KEY).status != 429:
        pass

    with ThreadPoolExecutor(3) as senders:
        started = time.monotonic()
        pressing = [senders.submit(over) for _ in range(2)]
        others = _send_for(gateway, PRESSING_SECONDS, KEY)
        limited = sum((each.result() for each in pressing), Counter[int]())
        took = time.monotonic() - started

    assert others.keys() == {200}
    assert limited.keys() == {200, 429}
    assert limited[200] * BATCH == pytest.approx(LIMITED_RATE * took, rel=0.05)


def _send_for(gateway: Gateway, seconds: float, key: str) -> Counter[int]:
    """Send batches one after the other; gives how often each status was answered."""
    ends, statuses = time.monotonic() + seconds, Counter[int]()
    while time.monotonic() < ends:
        statuses[gateway.send(body_of(events(BATCH)), gamelake_key=key).status] += 1
    return statuses
