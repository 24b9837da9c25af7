"""Requests of support staff: to forget or export a player of their game, by their keys alone."""

import http.client
import json
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import quote

import pytest

from gamelake.privacy.support_calls import SupportAction, SupportCall, decode_call
from services.gateway.authentication import KEY_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, sign
from services.gateway.support_endpoint import signed_text
from tests.embedded.gateway import KEY, SECRET, SUPPORT_KEY, Gateway, Reply, audit_topic_of, body_of, events
from tests.embedded.topic_records import ids_in, records_in
from tests.support.eventually import eventually
from tools.embedded import EmbeddedKafka, EmbeddedRegistry
from tools.embedded.kafka import create_topic, delete_topic
from tools.embedded.ports import HOST

SUPPORT, SUPPORT_SECRET = "archery-support", "a-secret-of-the-support-staff-of-archery"
OTHER, OTHER_SECRET = "bingo-support", "a-secret-of-the-support-staff-of-bingo"
MAIL = "anna.of.the.archers@example.org"


@pytest.fixture(scope="module")
def name(kafka: EmbeddedKafka) -> Iterator[str]:
    name = f"support-{uuid.uuid4().hex}"
    create_topic(kafka.bootstrap_servers, name, 3)
    create_topic(kafka.bootstrap_servers, audit_topic_of(name), 1)
    yield name
    delete_topic(kafka.bootstrap_servers, name)
    delete_topic(kafka.bootstrap_servers, audit_topic_of(name))


@pytest.fixture(scope="module")
def gateway(
    tmp_path_factory: pytest.TempPathFactory, kafka: EmbeddedKafka, registry: EmbeddedRegistry, name: str
) -> Iterator[Gateway]:
    """The service in two processes, with keys of support staff."""
    folder = tmp_path_factory.mktemp("support")
    opened = Gateway.open(
        folder, bootstrap_servers=kafka.bootstrap_servers, registry_url=registry.url, topic=name, INGEST_PROCESSES="2"
    )
    keys = [
        f"{{id: {KEY}, game: archery_duel, secrets: [{SECRET}]}}",
        f"{{id: {SUPPORT}, game: archery_duel, role: support, secrets: [{SUPPORT_SECRET}]}}",
        f"{{id: {OTHER}, game: bingo_harbor, role: support, secrets: [{OTHER_SECRET}]}}",
    ]
    (folder / "keys.yaml").write_text(f"keys: [{', '.join(keys)}]\n")
    # Both processes have the keys from their start.
    opened.process.stop()
    opened.restart()
    yield opened
    opened.process.stop()


def request(
    gateway: Gateway, method: str, player: str, key: str = SUPPORT, secret: str = SUPPORT_SECRET, **changes: str
) -> Reply:
    """A signed request about a player; `changes` replace what is signed."""
    timestamp = changes.get("timestamp", unused_timestamp())
    text = signed_text(changes.get("signed_method", method), changes.get("signed_player", player))
    headers: Mapping[str, str] = {
        KEY_HEADER: key,
        TIMESTAMP_HEADER: timestamp,
        SIGNATURE_HEADER: sign(secret.encode(), timestamp, text),
    }
    connection = http.client.HTTPConnection(HOST, gateway.port, timeout=30)
    try:
        connection.request(method, f"/v1/players/{quote(player, safe='')}", headers=dict(headers))
        response = connection.getresponse()
        return Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
    finally:
        connection.close()


_latest = 0


def unused_timestamp() -> str:
    """Now, or a second after the former one: a signature is valid once."""
    global _latest  # noqa: PLW0603 # of the whole run, as the vault is
    _latest = max(int(time.time()), _latest + 1)
    return str(_latest)


def send(gateway: Gateway, player: str) -> None:
    assert gateway.send(body_of(events(1, gamer_id=player, personal={"email": MAIL}))).result.accepted == 1


@pytest.mark.parametrize("player", ["anna", "Änne/of the?woods#1", "a%2Fb", "..", "玩家"])
def test_an_erased_player_is_gone_and_gets_another_pseudonym(
    gateway: Gateway, kafka: EmbeddedKafka, name: str, player: str
) -> None:
    send(gateway, player)
    before = json.loads(request(gateway, "GET", player).body)

    forgotten = request(gateway, "DELETE", player)

    assert (forgotten.status, forgotten.body) == (204, b"")
    assert forgotten.headers["gamelake-pseudonym"] == before["pseudonym"]
    assert request(gateway, "GET", player).status == 404
    assert request(gateway, "DELETE", player).status == 404
    assert before["data"] == [{"personal": {"email": MAIL}}]
    eventually(lambda: pseudonym_of(gateway, player) not in ("", before["pseudonym"]), timeout=10)
    assert before["pseudonym"].encode() in b"".join(records_in(kafka, name))


def pseudonym_of(gateway: Gateway, player: str) -> str:
    """The player's pseudonym after another event."""
    send(gateway, player)
    reply = request(gateway, "GET", player)
    return json.loads(reply.body)["pseudonym"] if reply.status == 200 else ""


@pytest.mark.parametrize(("method", "status"), [("GET", 200), ("DELETE", 204)])
def test_a_replayed_request_of_support_discloses_and_erases_nothing(gateway: Gateway, method: str, status: int) -> None:
    player, timestamp = f"player-{uuid.uuid4().hex}", unused_timestamp()
    send(gateway, player)
    assert request(gateway, method, player, timestamp=timestamp).status == status
    eventually(lambda: pseudonym_of(gateway, player) != "")

    replies = [request(gateway, method, player, timestamp=timestamp) for _ in range(10)]
    gateway.process.stop()
    gateway.restart()
    replies.append(request(gateway, method, player, timestamp=timestamp))

    assert {reply.status for reply in replies} == {401}
    assert all(b"used before" in reply.body and MAIL.encode() not in reply.body for reply in replies)
    assert request(gateway, "GET", player).status == 200


def test_a_replayed_request_of_a_game_is_accepted_with_the_same_event_ids(
    gateway: Gateway, kafka: EmbeddedKafka, name: str
) -> None:
    body, timestamp = body_of(events(3)), str(int(time.time()))
    headers = {"gamelake_timestamp": timestamp, "gamelake_signature": sign(SECRET.encode(), timestamp, body)}

    replies = [gateway.send(body, **headers) for _ in range(3)]

    assert [reply.result.accepted for reply in replies] == [3, 3, 3]
    sent = {event["event_id"] for event in json.loads(body)["events"]}
    found = ids_in(kafka, name)
    assert {event_id: found[event_id] for event_id in sent} == dict.fromkeys(sent, 3)


@pytest.mark.parametrize(
    ("status", "changes"),
    [
        (403, {"key": KEY, "secret": SECRET}),
        (401, {"secret": OTHER_SECRET}),
        (401, {"key": "unknown"}),
        (401, {"signed_player": "bella"}),
        (401, {"signed_method": "GET"}),
        (401, {"timestamp": "1"}),
        (404, {"key": OTHER, "secret": OTHER_SECRET}),
    ],
)
def test_only_support_of_the_same_game_erases_a_player(gateway: Gateway, status: int, changes: dict[str, str]) -> None:
    send(gateway, "carla")

    reply = request(gateway, "DELETE", "carla", **changes)

    assert (reply.status, b"error" in reply.body) == (status, True)
    assert request(gateway, "GET", "carla").status == 200


def test_a_support_key_sends_no_events(gateway: Gateway) -> None:
    body = body_of(events(1))
    timestamp = str(int(time.time()))

    reply = gateway.send(
        body,
        gamelake_key=SUPPORT,
        gamelake_timestamp=timestamp,
        gamelake_signature=sign(SUPPORT_SECRET.encode(), timestamp, body),
    )

    assert reply.status == 401


def test_another_method_is_not_allowed(gateway: Gateway) -> None:
    reply = request(gateway, "POST", "anna")

    assert (reply.status, reply.headers["allow"]) == (405, "DELETE, GET")


def test_the_log_has_the_key_and_not_the_player(gateway: Gateway) -> None:
    player = f"player-{uuid.uuid4().hex}"
    send(gateway, player)
    request(gateway, "GET", player)
    request(gateway, "DELETE", player)
    request(gateway, "DELETE", player, secret=OTHER_SECRET)

    log = (gateway.folder / "ingest.log").read_text()

    assert f" player_exported game=archery_duel key_id={SUPPORT}\n" in log
    assert re.search(rf" player_forgotten game=archery_duel erasure=\d+ key_id={SUPPORT}\n", log)
    assert player not in log
    assert MAIL not in log


def calls_about(kafka: EmbeddedKafka, topic: str, key: str) -> list[SupportCall]:
    """The calls that the audit has of a key, in order."""
    prefix = key.encode()
    records = records_in(kafka, audit_topic_of(topic))
    return [decode_call(record.removeprefix(prefix)) for record in records if record.startswith(prefix)]


def test_the_audit_has_each_call_by_the_key_and_the_pseudonym_and_not_the_player(
    gateway: Gateway, kafka: EmbeddedKafka, name: str
) -> None:
    player = f"player-{uuid.uuid4().hex}"
    send(gateway, player)
    before = len(calls_about(kafka, name, SUPPORT))

    pseudonym = json.loads(request(gateway, "GET", player).body)["pseudonym"]
    statuses = [request(gateway, method, player).status for method in ("DELETE", "GET")]

    calls = calls_about(kafka, name, SUPPORT)[before:]
    assert [(call.action, call.pseudonym, call.status) for call in calls] == [
        (SupportAction.EXPORT, pseudonym, 200),
        (SupportAction.ERASURE, pseudonym, 204),
        (SupportAction.EXPORT, None, 404),
    ]
    assert statuses == [204, 404]
    assert {(call.key_id, call.role, call.game) for call in calls} == {(SUPPORT, "support", "archery_duel")}
    recorded = b"".join(records_in(kafka, audit_topic_of(name)))
    assert player.encode() not in recorded
    assert MAIL.encode() not in recorded


@pytest.mark.slow
def test_no_data_is_disclosed_and_no_player_is_erased_while_kafka_does_not_confirm_the_record(
    open_gateway: Callable[..., Gateway], kafka: EmbeddedKafka
) -> None:
    missing = f"audit-{uuid.uuid4().hex}"
    gateway = open_gateway(GAMELAKE_AUDIT_SUPPORT_CALLS_TOPIC=missing)
    send(gateway, "dora")

    replies = [request(gateway, method, "dora", SUPPORT_KEY, SECRET) for method in ("GET", "DELETE")]

    assert [reply.status for reply in replies] == [503, 503]
    assert MAIL.encode() not in replies[0].body
    create_topic(kafka.bootstrap_servers, missing, 1)
    eventually(lambda: exports_mail(gateway, "dora"), timeout=60)
    delete_topic(kafka.bootstrap_servers, missing)


def exports_mail(gateway: Gateway, player: str) -> bool:
    """Return True if an export has the player's mail address."""
    return MAIL.encode() in request(gateway, "GET", player, SUPPORT_KEY, SECRET).body
