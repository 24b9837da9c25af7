"""The front door over a real Kafka: what it has answered with 200 is there, whatever dies."""

import gzip
import socket
import sqlite3
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard
from confluent_kafka import Consumer, TopicPartition
from google.protobuf.message_factory import GetMessageClass

from gamelake.wire.event_schemas import load_schemas
from gamelake.wire.framing import HEADER_BYTES
from services.embedded import EmbeddedKafka, EmbeddedRegistry
from services.embedded.ports import HOST
from services.embedded.topics import create_topic, delete_topic
from tests.embedded.front_door import KEY, FrontDoor, Reply, body_of, events
from tests.eventually import eventually

PARTITIONS = 3
# A record's key.
_PSEUDONYM_CHARACTERS = 32
CONTRACTS = Path(__file__).parents[2] / "contracts"


@pytest.fixture(scope="module")
def name(kafka: EmbeddedKafka) -> Iterator[str]:
    """The topic that the service writes to."""
    name = f"front-door-{uuid.uuid4().hex}"
    create_topic(kafka.bootstrap_servers, name, PARTITIONS)
    yield name
    delete_topic(kafka.bootstrap_servers, name)


@pytest.fixture(scope="module")
def door(
    tmp_path_factory: pytest.TempPathFactory, kafka: EmbeddedKafka, registry: EmbeddedRegistry, name: str
) -> Iterator[FrontDoor]:
    """The service, with small limits; a test that ends it starts it again."""
    opened = FrontDoor.open(
        tmp_path_factory.mktemp("front-door"),
        bootstrap_servers=kafka.bootstrap_servers,
        registry_url=registry.url,
        topic=name,
        INGEST_BODY_SECONDS="1",
        INGEST_KAFKA_SECONDS="3",
    )
    yield opened
    opened.process.stop()


def values_in(kafka: EmbeddedKafka, topic: str) -> list[bytes]:
    """All records of a topic: key and value of each, one behind the other."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "test"})
    ends = {p: consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=30)[1] for p in range(PARTITIONS)}
    consumer.assign([TopicPartition(topic, partition, 0) for partition in ends])
    found: list[bytes] = []
    while len(found) < sum(ends.values()):
        found += [(message.key() or b"") + (message.value() or b"") for message in consumer.consume(1000, timeout=1)]
    consumer.close()
    return found


def ids_in(kafka: EmbeddedKafka, topic: str) -> Counter[str]:
    """How often each event stands in a topic."""
    event = GetMessageClass(load_schemas(CONTRACTS, 3)[-1].message)
    bodies = [value[_PSEUDONYM_CHARACTERS + HEADER_BYTES :] for value in values_in(kafka, topic)]
    return Counter(event.FromString(body).event_id for body in bodies)  # type: ignore[attr-defined]


def test_events_that_were_accepted_are_in_kafka_once(door: FrontDoor, kafka: EmbeddedKafka, name: str) -> None:
    sent = events(500)

    replies = [
        door.send(body_of(sent[:100])),
        door.send(gzip.compress(body_of(sent[100:200])), content_encoding="gzip"),
        door.send(zstandard.compress(body_of(sent[200:])), content_encoding="zstd"),
    ]

    assert [reply.taken.accepted for reply in replies] == [100, 100, 300]
    found = ids_in(kafka, name)
    assert [found[str(each["event_id"])] for each in sent] == [1] * len(sent)


def test_a_bad_event_is_named_and_the_others_are_taken(door: FrontDoor, kafka: EmbeddedKafka, name: str) -> None:
    good = events(2)

    reply = door.send(body_of([good[0], {"event_id": 1}, good[1]]))

    assert reply.taken.accepted == 2
    assert reply.taken.rejected == [{"index": 1, "reason": "wrong_type", "field": "event_id"}]
    assert {each["event_id"] for each in good} <= set(ids_in(kafka, name))


@pytest.mark.parametrize(
    ("status", "send"),
    [
        (401, lambda door: door.send(b"{}", gamelake_signature="0" * 64)),
        (401, lambda door: door.send(b"{}", gamelake_key="nobody")),
        (401, lambda door: door.send(b"{}", gamelake_timestamp="1")),
        (400, lambda door: door.send(b'{"events": ')),
        (400, lambda door: door.send(b"")),
        (400, lambda door: door.send(body_of(events(1)), content_encoding="gzip")),
        (413, lambda door: door.send(bytes(2**20 + 1))),
        (413, lambda door: door.send(bytes(2**22))),
        (401, lambda door: door.send(bytes(2**22), gamelake_key="nobody")),
        (413, lambda door: door.send(gzip.compress(bytes(2**24)), content_encoding="gzip")),
        (415, lambda door: door.send(b"{}", content_type="text/plain")),
        (415, lambda door: door.send(b"{}", content_encoding="br")),
        (404, lambda door: door.get("/v2/events")),
        (405, lambda door: door.get("/v1/events")),
    ],
)
def test_what_is_wrong_with_a_request_is_its_status(
    door: FrontDoor, status: int, send: Callable[[FrontDoor], Reply]
) -> None:
    reply = send(door)

    assert reply.status == status
    assert b"error" in reply.body


def test_a_body_that_trickles_in_is_given_up(door: FrontDoor) -> None:
    # The signature is looked at only once the body is there.
    head = (
        "POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        f"gamelake-key: {KEY}\r\ngamelake-timestamp: {int(time.time())}\r\ngamelake-signature: {'0' * 64}\r\n"
    )
    with socket.create_connection((HOST, door.port), timeout=20) as slow:
        slow.sendall(f"{head}content-length: 100\r\n\r\n{{".encode())

        answer = slow.recv(1000)

    assert b"408" in answer.partition(b"\r\n")[0]


def test_the_pages_for_people_and_programs_answer(door: FrontDoor) -> None:
    door.send(body_of(events(3)))

    pages = {path: door.get(path) for path in ("/", "/openapi.yaml", "/healthz", "/readyz", "/metrics")}

    assert {path: reply.status for path, reply in pages.items()} == dict.fromkeys(pages, 200)
    assert b'gamelake_ingest_events_accepted_total{game="archery_duel"}' in pages["/metrics"].body


def test_nothing_personal_is_anywhere_but_in_the_vault_and_there_it_is_sealed(
    door: FrontDoor, kafka: EmbeddedKafka, name: str
) -> None:
    secrets = [f"{kind}-{uuid.uuid4().hex}" for kind in ("player", "device", "mail", "address", "name", "text")]
    player, device, *told = secrets
    personal = dict(zip(("email", "ip_address", "player_name", "free_text"), told, strict=True))
    sent = events(3, gamer_id=player, event_params={"device_id": device, "level": 7}, personal=personal)

    accepted = door.send(body_of(sent)).taken.accepted
    refused = door.send(body_of(events(1, event_name="", personal=personal))).taken.rejected

    assert (accepted, refused) == (3, [{"index": 0, "reason": "no_event_name", "field": "event_name"}])
    values = b"".join(values_in(kafka, name))
    files = b"".join(file.read_bytes() for file in door.folder.iterdir())
    metrics = door.get("/metrics").body
    for secret in secrets:
        assert secret.encode() not in values
        assert secret.encode() not in files
        assert secret.encode() not in metrics
    assert str(sent[0]["event_id"]).encode() in values
    assert b"personal_data" in files


def test_without_its_vault_the_service_takes_nothing_personal(door: FrontDoor, kafka: EmbeddedKafka, name: str) -> None:
    somebody = events(1, gamer_id=f"new-{uuid.uuid4()}")
    vault = door.folder / "vault.db"
    with sqlite3.connect(vault, isolation_level=None) as held:
        held.execute("BEGIN EXCLUSIVE")
        reply = door.send(body_of(somebody))
        held.execute("ROLLBACK")
    held.close()

    again = door.send(body_of(somebody))

    assert (reply.status, "retry-after" in reply.headers, again.taken.accepted) == (503, True, 1)
    assert ids_in(kafka, name)[str(somebody[0]["event_id"])] == 1


class Traffic:
    """A game that sends small batches without end, and keeps account of what was accepted."""

    def __init__(self, door: FrontDoor) -> None:
        self._door = door
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.accepted: list[str] = []
        self.statuses: Counter[int] = Counter()

    def __enter__(self) -> "Traffic":
        """Begin to send."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End, once the last answer is there."""
        self._stop.set()
        self._thread.join(60)
        assert not self._thread.is_alive()

    def await_accepted(self, more: int) -> None:
        """Wait until so many more events were accepted."""
        target = len(self.accepted) + more
        eventually(lambda: len(self.accepted) >= target, timeout=60)

    def _run(self) -> None:
        batch = events(20)
        while not self._stop.is_set():
            try:
                reply = self._door.send(body_of(batch))
            except OSError:
                self.statuses[0] += 1
                self._stop.wait(0.05)
                continue
            self.statuses[reply.status] += 1
            if reply.status == 200:
                self.accepted += [str(each["event_id"]) for each in batch]
                batch = events(20)


def test_a_service_that_is_killed_has_lost_nothing_that_it_accepted(
    door: FrontDoor, kafka: EmbeddedKafka, name: str
) -> None:
    with Traffic(door) as traffic:
        for _ in range(3):
            traffic.await_accepted(400)
            door.process.kill()
            door.start_again()
        traffic.await_accepted(400)

    found = ids_in(kafka, name)
    assert set(traffic.accepted) <= set(found)
    assert max(Counter(traffic.accepted).values()) == 1


def test_a_service_that_is_asked_to_end_answers_what_it_has_begun(
    door: FrontDoor, kafka: EmbeddedKafka, name: str
) -> None:
    with Traffic(door) as traffic:
        traffic.await_accepted(200)
        door.process.stop()
        exit_code = door.process.exit_code()
        door.start_again()

    assert exit_code == 0
    assert set(traffic.accepted) <= set(ids_in(kafka, name))


@pytest.fixture
def own_kafka(tmp_path: Path) -> Iterator[EmbeddedKafka]:
    """A Kafka that a test may kill."""
    own = EmbeddedKafka(tmp_path / "kafka")
    own.start()
    yield own
    own.stop()


def test_while_kafka_is_away_the_answer_is_503_and_afterwards_all_goes_on(
    tmp_path: Path, own_kafka: EmbeddedKafka, registry: EmbeddedRegistry
) -> None:
    create_topic(own_kafka.bootstrap_servers, "events", PARTITIONS)
    door = FrontDoor.open(
        tmp_path,
        bootstrap_servers=own_kafka.bootstrap_servers,
        registry_url=registry.url,
        topic="events",
        INGEST_KAFKA_SECONDS="2",
    )
    with Traffic(door) as traffic:
        traffic.await_accepted(400)
        own_kafka.kill()
        eventually(lambda: traffic.statuses[503] > 0, timeout=60)
        not_ready = door.get("/readyz").status
        own_kafka.start()
        traffic.await_accepted(400)

    ready = door.get("/readyz").status
    refused = door.send(b"{}", gamelake_key="nobody").status
    found = ids_in(own_kafka, "events")
    door.process.stop()
    assert (not_ready, ready, refused) == (503, 200, 401)
    assert set(traffic.accepted) <= set(found)
    assert set(traffic.statuses) <= {200, 503}
