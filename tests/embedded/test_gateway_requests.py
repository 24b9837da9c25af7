"""Requests to the gateway on a real Kafka: the events of a response 200 are there, after SIGTERM too."""

import gzip
import json
import socket
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator

import pytest
import zstandard

from tests.embedded.gateway import KEY, Gateway, Reply, body_of, events
from tests.embedded.topic_records import ids_in, records_in
from tests.embedded.traffic import Traffic
from tools.embedded import EmbeddedKafka, EmbeddedRegistry
from tools.embedded.kafka import create_topic, delete_topic
from tools.embedded.ports import HOST

PARTITIONS = 3


@pytest.fixture(scope="module")
def name(kafka: EmbeddedKafka) -> Iterator[str]:
    """The topic that the service writes to."""
    name = f"gateway-{uuid.uuid4().hex}"
    create_topic(kafka.bootstrap_servers, name, PARTITIONS)
    yield name
    delete_topic(kafka.bootstrap_servers, name)


@pytest.fixture(scope="module")
def gateway(
    tmp_path_factory: pytest.TempPathFactory, kafka: EmbeddedKafka, registry: EmbeddedRegistry, name: str
) -> Iterator[Gateway]:
    """The service, with small limits; a test that ends it starts it again."""
    opened = Gateway.open(
        tmp_path_factory.mktemp("gateway"),
        bootstrap_servers=kafka.bootstrap_servers,
        registry_url=registry.url,
        topic=name,
        INGEST_BODY_SECONDS="5",
        INGEST_KAFKA_SECONDS="3",
    )
    yield opened
    opened.process.stop()


def test_accepted_events_are_in_kafka_once(gateway: Gateway, kafka: EmbeddedKafka, name: str) -> None:
    sent = events(500)

    replies = [
        gateway.send(body_of(sent[:100])),
        gateway.send(gzip.compress(body_of(sent[100:200])), content_encoding="gzip"),
        gateway.send(zstandard.compress(body_of(sent[200:])), content_encoding="zstd"),
    ]

    assert [reply.result.accepted for reply in replies] == [100, 100, 300]
    found = ids_in(kafka, name)
    assert [found[str(each["event_id"])] for each in sent] == [1] * len(sent)


def test_an_invalid_event_is_listed_and_the_others_are_accepted(
    gateway: Gateway, kafka: EmbeddedKafka, name: str
) -> None:
    valid = events(2)

    reply = gateway.send(body_of([valid[0], {"event_id": 1}, valid[1]]))

    assert reply.result.accepted == 2
    assert reply.result.rejected == [{"index": 1, "reason": "wrong_type", "field": "event_id"}]
    assert {each["event_id"] for each in valid} <= set(ids_in(kafka, name))


@pytest.mark.parametrize(
    ("status", "send"),
    [
        (401, lambda gateway: gateway.send(b"{}", gamelake_signature="0" * 64)),
        (401, lambda gateway: gateway.send(b"{}", gamelake_key="unknown")),
        (401, lambda gateway: gateway.send(b"{}", gamelake_timestamp="1")),
        (400, lambda gateway: gateway.send(b'{"events": ')),
        (400, lambda gateway: gateway.send(b"")),
        (400, lambda gateway: gateway.send(body_of(events(1)), content_encoding="gzip")),
        (413, lambda gateway: gateway.send(bytes(2**20 + 1))),
        (413, lambda gateway: gateway.send(bytes(2**22))),
        (401, lambda gateway: gateway.send(bytes(2**22), gamelake_key="unknown")),
        (413, lambda gateway: gateway.send(gzip.compress(bytes(2**24)), content_encoding="gzip")),
        (415, lambda gateway: gateway.send(b"{}", content_type="text/plain")),
        (415, lambda gateway: gateway.send(b"{}", content_encoding="br")),
        (404, lambda gateway: gateway.get("/v2/events")),
        (405, lambda gateway: gateway.get("/v1/events")),
    ],
)
def test_an_invalid_request_gets_the_status_of_its_error(
    gateway: Gateway, status: int, send: Callable[[Gateway], Reply]
) -> None:
    reply = send(gateway)

    assert reply.status == status
    assert b"error" in reply.body


def test_a_slow_body_gets_408(gateway: Gateway) -> None:
    # The signature is verified after the body has arrived.
    head = (
        "POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        f"gamelake-key: {KEY}\r\ngamelake-timestamp: {int(time.time())}\r\ngamelake-signature: {'0' * 64}\r\n"
    )
    with socket.create_connection((HOST, gateway.port), timeout=20) as slow:
        slow.sendall(f"{head}content-length: 100\r\n\r\n{{".encode())

        response = slow.recv(1000)

    assert b"408" in response.partition(b"\r\n")[0]


def test_all_pages_are_served(gateway: Gateway) -> None:
    gateway.send(body_of(events(3)))

    pages = {path: gateway.get(path) for path in ("/", "/openapi.yaml", "/healthz", "/readyz")}

    assert {path: reply.status for path, reply in pages.items()} == dict.fromkeys(pages, 200)


def test_metrics_are_served_at_a_port_of_their_own(gateway: Gateway) -> None:
    gateway.send(body_of(events(3)))

    assert gateway.get("/metrics").status == 404
    assert b'gamelake_ingest_events_accepted_total{game="archery_duel"}' in gateway.metrics()


def test_personal_data_is_only_in_the_vault_and_encrypted(gateway: Gateway, kafka: EmbeddedKafka, name: str) -> None:
    secrets = [f"{kind}-{uuid.uuid4().hex}" for kind in ("player", "device", "mail", "address", "name", "text")]
    player, device, *others = secrets
    personal = dict(zip(("email", "ip_address", "player_name", "free_text"), others, strict=True))
    sent = events(3, gamer_id=player, event_params={"device_id": device, "level": 7}, personal=personal)

    accepted = gateway.send(body_of(sent)).result.accepted
    refused = gateway.send(body_of(events(1, event_name="", personal=personal))).result.rejected

    assert (accepted, refused) == (3, [{"index": 0, "reason": "no_event_name", "field": "event_name"}])
    values = b"".join(records_in(kafka, name))
    files = b"".join(file.read_bytes() for file in gateway.folder.iterdir())
    metrics = gateway.metrics()
    for secret in secrets:
        assert secret.encode() not in values
        assert secret.encode() not in files
        assert secret.encode() not in metrics
    assert str(sent[0]["event_id"]).encode() in values
    assert b"personal_data" in files


def test_without_its_vault_the_gateway_refuses_personal_data(gateway: Gateway, kafka: EmbeddedKafka, name: str) -> None:
    batch = events(1, gamer_id=f"new-{uuid.uuid4()}")
    vault = gateway.folder / "vault.db"
    with sqlite3.connect(vault, isolation_level=None) as held:
        held.execute("BEGIN EXCLUSIVE")
        reply = gateway.send(body_of(batch))
        held.execute("ROLLBACK")
    held.close()

    again = gateway.send(body_of(batch))

    assert (reply.status, "retry-after" in reply.headers, again.result.accepted) == (503, True, 1)
    assert ids_in(kafka, name)[str(batch[0]["event_id"])] == 1


def test_sigterm_lets_requests_in_progress_finish(gateway: Gateway, kafka: EmbeddedKafka, name: str) -> None:
    with Traffic(gateway) as traffic:
        traffic.await_accepted(200)
        gateway.process.stop()
        exit_code = gateway.process.exit_code()
        gateway.restart()

    assert exit_code == 0
    assert set(traffic.accepted) <= set(ids_in(kafka, name))


def test_each_line_of_the_log_is_an_event_where_json_is_set(open_gateway: Callable[..., Gateway]) -> None:
    gateway = open_gateway(GAMELAKE_LOG_FORMAT="json")
    assert gateway.send(body_of(events(1))).result.accepted == 1

    lines = [json.loads(line) for line in gateway.log().splitlines()]

    assert {line["logger"] for line in lines} >= {"_granian"}
    assert all(line["event"] and line["level"] and line["time"] for line in lines)
