"""Senders that break the rules are refused, at a bounded cost, and do not affect others."""

import gzip
import http.client
import json
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial

import pytest
import zstandard

from services.gateway.authentication import KEY_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, sign
from tests.embedded.fuzzed_requests import compressed
from tests.embedded.gateway import KEY, LIMITED_KEY, LIMITED_RATE, SECRET, BatchResult, Gateway, body_of, events
from tests.embedded.stalled_clients import await_closed, connections, head_of
from tests.embedded.topic_records import records_in
from tools.embedded import EmbeddedKafka
from tools.embedded.ports import HOST

MIB = 2**20
CLIENTS = 300
MOST_MIB = 400
# Differences that the allocator causes.
NOISE_MIB = 16
SIGNED_SECONDS_AGO = 20
PRESSING_SECONDS = 8
BATCH = 50
# Networks on this machine: one that sends right signatures only, and one that floods.
OTHER_HOST, FLOODING = "127.0.0.2", "127.0.0.3"


@pytest.fixture(scope="module")
def gateway(open_gateway: Callable[..., Gateway]) -> Gateway:
    """The service with short windows; a body may take as long as a busy machine needs to send it."""
    return open_gateway(INGEST_BODY_SECONDS="60", INGEST_SIGNATURE_WINDOW_SECONDS="15", INGEST_BURST_SECONDS="1")


@pytest.fixture(scope="module")
def impatient_gateway(open_gateway: Callable[..., Gateway]) -> Gateway:
    """The service that waits two seconds for a body."""
    return open_gateway(INGEST_BODY_SECONDS="2")


def bombs() -> list[tuple[bytes, str]]:
    """Decompression bombs: small bodies with a large content."""
    objects = b'{"events":[' + b"{}," * 2_600_000 + b"{}]}"
    lists = b'{"events":[' + b"[" * 150_000 + b"]" * 150_000 + b"]}"
    zeros = bytes(256 * MIB)
    return [
        (gzip.compress(zeros), "gzip"),
        (zstandard.compress(zeros), "zstd"),
        (gzip.compress(objects), "gzip"),
        (zstandard.compress(objects), "zstd"),
        (zstandard.compress(lists), "zstd"),
    ]


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing", marks=pytest.mark.slow),
        pytest.param(b"POST /v1/events HTTP/1.1\r\nhost: x\r\n", id="half a head"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", id="HTTP/2"),
        pytest.param(head_of(100) + b"{", id="half a body"),
    ],
)
def test_hundreds_of_stalled_clients_do_not_affect_others(impatient_gateway: Gateway, sent: bytes) -> None:
    with connections(impatient_gateway, CLIENTS, sent) as stalled:
        accepted = impatient_gateway.send(body_of(events(20))).result.accepted
        held = impatient_gateway.peak_mib()
        await_closed(stalled)

    assert accepted == 20
    assert held < MOST_MIB


def test_bodies_in_flight_are_bounded_in_memory(impatient_gateway: Gateway) -> None:
    with connections(impatient_gateway, CLIENTS, head_of(MIB)) as stalled:
        for each in stalled:
            each.sendall(bytes(MIB - 1))
        held = impatient_gateway.peak_mib()
        await_closed(stalled)

    assert held < MOST_MIB
    assert impatient_gateway.send(body_of(events(20))).result.accepted == 20


def test_a_decompression_bomb_is_refused_in_bounded_memory(gateway: Gateway) -> None:
    replies = [gateway.send(bomb, content_encoding=encoding) for bomb, encoding in bombs() * 2]

    assert [reply.status for reply in replies] == [413, 413, 413, 413, 200] * 2
    # This many brackets in a row are one event that is not JSON.
    assert replies[-1].result == BatchResult(0, [{"index": 0, "reason": "malformed"}])
    assert gateway.peak_mib() < MOST_MIB


def test_an_event_too_large_for_kafka_is_rejected_alone(gateway: Gateway) -> None:
    batch = events(3)
    batch[1]["attributes"] = {str(number): "x" * 4_096 for number in range(MIB // 4_096)}

    reply = gateway.send(compressed(body_of(batch), "gzip"), content_encoding="gzip")

    assert (reply.result.accepted, reply.result.rejected) == (2, [{"index": 1, "reason": "too_large"}])


def test_a_chunked_body_over_the_limit_is_refused_and_its_sender_gets_the_response(gateway: Gateway) -> None:
    timestamp = str(int(time.time()))
    headers = {"content-type": "application/json", KEY_HEADER: KEY, TIMESTAMP_HEADER: timestamp}
    with closing(http.client.HTTPConnection(HOST, gateway.port, timeout=20)) as connection:
        connection.request("POST", "/v1/events", iter([bytes(MIB)] * 4), headers, encode_chunked=True)

        response = connection.getresponse()

        assert (response.status, json.loads(response.read())) == (
            413,
            {"error": f"a body may have at most {MIB} bytes"},
        )


@pytest.mark.parametrize(
    "lengths",
    [
        [b"transfer-encoding: chunked, chunked"],
        [b"transfer-encoding: gzip, chunked"],
        [b"transfer-encoding: chunked", b"content-length: 5"],
        [b"content-length: 5", b"transfer-encoding: chunked"],
    ],
)
def test_what_follows_a_body_whose_end_is_ambiguous_is_no_request(
    gateway: Gateway, kafka: EmbeddedKafka, lengths: list[bytes]
) -> None:
    before, body = len(records_in(kafka, gateway.topic)), body_of(events(1))
    timestamp = str(int(time.time()))
    signed = {
        "host": HOST,
        "content-type": "application/json",
        KEY_HEADER: KEY,
        TIMESTAMP_HEADER: timestamp,
        SIGNATURE_HEADER: sign(SECRET.encode(), timestamp, body),
    }
    lines = [f"{name}: {value}".encode() for name, value in signed.items()]
    hidden = b"\r\n".join([b"POST /v1/events HTTP/1.1", *lines, b"content-length: %d" % len(body), b"", body])
    sent = b"\r\n".join([b"POST /v1/events HTTP/1.1", *lines, *lengths, b"", b"0", b"", hidden])

    with connections(gateway, 1, sent) as [connection]:
        received = b"".join(iter(partial(connection.recv, MIB), b""))

    assert received.count(b"HTTP/1.1 ") == received.count(b"HTTP/1.1 400 ") == 1
    assert len(records_in(kafka, gateway.topic)) == before


def test_a_signature_is_not_valid_at_another_time(gateway: Gateway) -> None:
    body, then = body_of(events(1)), str(int(time.time()) - SIGNED_SECONDS_AGO)
    signature = sign(SECRET.encode(), then, body)

    late = gateway.send(body, gamelake_timestamp=then, gamelake_signature=signature)
    under_another_time = gateway.send(body, gamelake_signature=signature)

    assert (late.status, under_another_time.status) == (401, 401)


def test_a_flood_of_wrong_signatures_does_not_affect_others(gateway: Gateway) -> None:
    body, before = body_of(events(100)), gateway.resident_mib()
    flood = partial(gateway.send, body, source=FLOODING, gamelake_signature="0" * 64)

    with ThreadPoolExecutor(8) as senders:
        wrong = [senders.submit(flood) for _ in range(1000)]
        good = [gateway.send(body_of(events(20)), source=OTHER_HOST).result.accepted for _ in range(20)]
        statuses = Counter(each.result().status for each in wrong)

    assert statuses == {401: 1000}
    assert good == [20] * 20
    assert gateway.resident_mib() - before < NOISE_MIB


def test_a_flood_of_unknown_keys_and_of_many_networks_needs_little_memory(gateway: Gateway) -> None:
    before = gateway.resident_mib()

    statuses = Counter(gateway.send(b"{}", gamelake_key=f"unknown-{number}").status for number in range(1000))
    for number in range(1, 250):
        wrong = gateway.send(b"{}", source=f"127.0.1.{number}", gamelake_signature="0" * 64)
        statuses[wrong.status] += 1

    assert statuses == {401: 1249}
    assert gateway.resident_mib() - before < NOISE_MIB
    assert gateway.send(body_of(events(1)), source=OTHER_HOST).status == 200


def test_a_game_over_its_rate_gets_its_rate_and_does_not_affect_others(gateway: Gateway) -> None:
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
    """Send batches one after another. Return the number of responses by status."""
    ends, statuses = time.monotonic() + seconds, Counter[int]()
    while time.monotonic() < ends:
        statuses[gateway.send(body_of(events(BATCH)), gamelake_key=key).status] += 1
    return statuses
