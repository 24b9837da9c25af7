"""The SDK and the simulator against the real gateway: acknowledged events are in Kafka, whichever process is killed."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from gamelake.contract.games import load_games
from services.sdk import Backoff, BatchLimits, BatchOutcome, BufferLimits, Client, Credentials, HttpTransport, Options
from tests.embedded.topic_records import ids_in, records_in
from tests.support.eventually import eventually
from tools.embedded import EmbeddedKafka, EmbeddedRegistry
from tools.embedded.gateway import EmbeddedGateway, GatewayBackend
from tools.embedded.kafka import create_topic, delete_topic
from tools.embedded.service import REPOSITORY
from tools.simulator.game_sdks import read_credentials

GAMES = ("archery_duel", "bingo_harbor")
PARTITIONS = 3
PATIENCE = timedelta(seconds=90)
QUICK = Backoff(first=timedelta(milliseconds=20), longest=timedelta(milliseconds=400))
SMALL = BatchLimits(events=50, wait=timedelta(milliseconds=20))
SLOW_KEY, SLOW_RATE = "slow", 50


@pytest.fixture(scope="module")
def topic_name(kafka: EmbeddedKafka) -> Iterator[str]:
    """The topic that the gateway writes to."""
    name = f"sdk-{uuid.uuid4().hex}"
    create_topic(kafka.bootstrap_servers, name, PARTITIONS)
    yield name
    delete_topic(kafka.bootstrap_servers, name)


@pytest.fixture(scope="module")
def gateway(
    tmp_path_factory: pytest.TempPathFactory, kafka: EmbeddedKafka, registry: EmbeddedRegistry, topic_name: str
) -> Iterator[EmbeddedGateway]:
    """The gateway, with a key for each game and a slow one."""
    backing = GatewayBackend(bootstrap_servers=kafka.bootstrap_servers, registry_url=registry.url, topic=topic_name)
    opened = EmbeddedGateway(tmp_path_factory.mktemp("gateway"), backing, {"INGEST_BURST_SECONDS": "1"})
    opened.make_keys([game.name for game in load_games(REPOSITORY / "contracts/games.yaml").games], 1_000_000)
    keys = yaml.safe_load(opened.keys_file.read_text())
    keys["keys"].append({"id": SLOW_KEY, "game": "zombie_kitchen", "secrets": ["s" * 32], "rate": SLOW_RATE})
    opened.keys_file.write_text(json.dumps(keys))
    with opened:
        yield opened


@pytest.fixture
def credentials(gateway: EmbeddedGateway) -> Credentials:
    """The first game's key."""
    return read_credentials(gateway.keys_file)[GAMES[0]]


def an_event(**fields: object) -> dict[str, object]:
    return {
        "event_id": str(uuid.uuid4()),
        "event_name": "tap",
        "event_time": datetime.now(UTC),
        "gamer_id": "a-player",
        **fields,
    }


def accepted_ids(outcomes: list[BatchOutcome]) -> list[str]:
    """The ids of the events that the game knows as accepted."""
    return [json.loads(event)["event_id"] for outcome in outcomes for event in outcome.accepted_events()]


def test_the_example_of_the_readme_works(
    tmp_path: Path, gateway: EmbeddedGateway, credentials: Credentials, kafka: EmbeddedKafka, topic_name: str
) -> None:
    readme = (REPOSITORY / "services/sdk/README.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    script = (
        example.replace("https://events.example.com", gateway.url)
        .replace("my-key", credentials.key)
        .replace("my-secret", credentials.secret)
    )
    before = sum(ids_in(kafka, topic_name).values())

    subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        check=True,
        timeout=60,
    )

    assert sum(ids_in(kafka, topic_name).values()) == before + 1
    assert (tmp_path / "events.buffer").stat().st_size < 100


@pytest.mark.slow
def test_a_killed_gateway_loses_no_event_and_keeps_the_order(
    tmp_path: Path, gateway: EmbeddedGateway, credentials: Credentials, kafka: EmbeddedKafka, topic_name: str
) -> None:
    outcomes: list[BatchOutcome] = []
    options = Options(batch=SMALL, backoff=QUICK, buffer=BufferLimits(file=tmp_path / "buffer"))
    client = Client.connect(gateway.url, credentials, options, outcomes.append)
    sent: list[str] = []
    stop = threading.Event()

    def play() -> None:
        while not stop.is_set():
            event = an_event(gamer_id="the-one-player")
            client.send(event)
            sent.append(str(event["event_id"]))
            time.sleep(0.001)

    player = threading.Thread(target=play)
    player.start()
    for _ in range(2):
        mark = len(accepted_ids(outcomes)) + 200
        eventually(lambda mark=mark: len(accepted_ids(outcomes)) >= mark, timeout=60)  # type: ignore[misc] # mark's value of now
        gateway.kill()
        gateway.start()
    stop.set()
    player.join()
    settled = client.close(PATIENCE)

    assert settled
    assert accepted_ids(outcomes) == sent
    assert client.stats().unanswered > 0
    in_kafka = [found for record in records_in(kafka, topic_name) if (found := _id_in(record)) in set(sent)]
    # An event may be there twice, but its first copies are in order.
    assert list(dict.fromkeys(in_kafka)) == sent


def _id_in(record: bytes) -> str:
    """The id of an event in a record, which begins with it: a tag, a length, 36 characters."""
    start = record.index(b"\n$", 32) + 2
    return record[start : start + 36].decode()


def test_a_game_killed_while_offline_sends_its_events_after_the_restart(
    tmp_path: Path, gateway: EmbeddedGateway, credentials: Credentials, kafka: EmbeddedKafka, topic_name: str
) -> None:
    buffer, sent = tmp_path / "buffer", tmp_path / "sent"
    game = f"""
import os, signal, uuid
from datetime import UTC, datetime
from pathlib import Path
from services.sdk import BufferLimits, Client, Credentials, Options
options = Options(buffer=BufferLimits(file=Path({str(buffer)!r})))
client = Client.connect("http://127.0.0.1:9", Credentials({credentials.key!r}, {credentials.secret!r}), options)
for number in range(400):
    event_id = str(uuid.uuid4())
    client.send({{"event_id": event_id, "event_name": "tap", "event_time": datetime.now(UTC), "gamer_id": "g"}})
    with open({str(sent)!r}, "a") as file:
        file.write(event_id + "\\n")
os.kill(os.getpid(), signal.SIGKILL)
"""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    ended = subprocess.run([sys.executable, "-c", game], env=environment, check=False, timeout=60)
    ids = sent.read_text().split()

    with Client.connect(gateway.url, credentials, Options(buffer=BufferLimits(file=buffer))) as client:
        assert client.flush(PATIENCE)

    assert ended.returncode == -signal.SIGKILL
    assert len(ids) == 400
    found = ids_in(kafka, topic_name)
    assert [found[event_id] for event_id in ids] == [1] * 400


@pytest.mark.parametrize("hours", [-3, 3])
def test_a_device_with_a_wrong_clock_is_accepted(
    gateway: EmbeddedGateway, credentials: Credentials, hours: int
) -> None:
    outcomes: list[BatchOutcome] = []
    client = Client(
        HttpTransport(gateway.url, PATIENCE),
        credentials,
        Options(batch=SMALL),
        outcomes.append,
        lambda: time.time() + hours * 3600,
    )

    with client:
        client.send(an_event())
        assert client.flush(PATIENCE)

    assert [(outcome.accepted, outcome.attempts) for outcome in outcomes] == [(1, 2)]
    assert abs(client.now() - time.time()) < 3


def test_events_outlive_a_wrong_secret_and_invalid_ones_are_reported_to_the_game(
    tmp_path: Path, gateway: EmbeddedGateway, credentials: Credentials
) -> None:
    outcomes: list[BatchOutcome] = []
    options = Options(batch=SMALL, backoff=QUICK, buffer=BufferLimits(file=tmp_path / "buffer"))
    with Client.connect(gateway.url, Credentials(credentials.key, "w" * 40), options, outcomes.append) as wrong:
        wrong.send(an_event())
        eventually(lambda: wrong.stats().denied > 0, timeout=30)
        assert wrong.stats().problem.startswith("401: ")
        assert not wrong.close(timedelta(0))
    assert outcomes == []
    with Client.connect(gateway.url, credentials, options, outcomes.append) as right:
        for event in (an_event(), an_event(event_name=""), an_event(surprise=1), b"\xff\xff not a message"):
            right.send(event)
        assert right.flush(PATIENCE)

    assert sum(outcome.accepted for outcome in outcomes) == 2
    rejections = [rejection for outcome in outcomes for rejection in outcome.rejections]
    assert [rejection.reason for rejection in rejections] == ["no_event_name", "unknown_field", "malformed"]


def test_a_game_over_its_rate_waits_and_loses_nothing(gateway: EmbeddedGateway) -> None:
    outcomes: list[BatchOutcome] = []
    options = Options(batch=BatchLimits(events=SLOW_RATE, wait=timedelta(0)), backoff=QUICK)
    events = 3 * SLOW_RATE

    with Client.connect(gateway.url, Credentials(SLOW_KEY, "s" * 32), options, outcomes.append) as client:
        started = time.monotonic()
        for _ in range(events):
            client.send(an_event())
        assert client.flush(PATIENCE)
        seconds = time.monotonic() - started

    assert sum(outcome.accepted for outcome in outcomes) == events
    assert client.stats().retries > 0
    # The first second's worth goes at once, the rest as the rate allows.
    assert seconds > (events - SLOW_RATE) / SLOW_RATE * 0.8


def simulator(gateway: EmbeddedGateway, folder: Path, *options: str) -> subprocess.Popen[str]:
    """The simulator's games, with a ledger and the ids of the acknowledged events."""
    places = ("--ledger", str(folder / "ledger.json"), "--acknowledged", str(folder / "acknowledged"))
    command = (sys.executable, "-m", "tools.simulator", "--url", gateway.url, "--keys-file", str(gateway.keys_file))
    return subprocess.Popen(
        (*command, *places, *options), cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


@pytest.mark.slow
def test_events_acknowledged_to_the_simulator_are_in_kafka_after_a_kill(
    tmp_path: Path, gateway: EmbeddedGateway, kafka: EmbeddedKafka, topic_name: str
) -> None:
    with simulator(gateway, tmp_path, "--games", "5", "--events", "20000", "--rate", "4000", "--seed", "41") as running:
        eventually(lambda: (tmp_path / "acknowledged").exists() and (tmp_path / "acknowledged").stat().st_size > 0)
        gateway.kill()
        gateway.start()
        output, _ = running.communicate(timeout=180)

    assert running.returncode == 0, output
    ledger = json.loads((tmp_path / "ledger.json").read_text())
    acknowledged = (tmp_path / "acknowledged").read_text().split()
    found = ids_in(kafka, topic_name)
    assert ledger["sent"] == ledger["acknowledged"] + sum(ledger["rejected"].values())
    assert ledger["acknowledged"] == len(acknowledged) > 19_000
    assert len(acknowledged) - len(set(acknowledged)) == ledger["duplicates"] > 0
    assert set(acknowledged) <= set(found)
    assert set(ledger["rejected"]) == {"malformed", "no_event_time", "other_game"}
    assert ledger["unanswered"] > 0
    assert ledger["retries"] > 0


def test_no_personal_data_of_the_simulator_is_in_kafka(
    tmp_path: Path, gateway: EmbeddedGateway, kafka: EmbeddedKafka, topic_name: str
) -> None:
    with simulator(gateway, tmp_path, "--games", "3", "--events", "2000", "--players", "40", "--seed", "42") as running:
        running.communicate(timeout=120)

    ledger = json.loads((tmp_path / "ledger.json").read_text())
    records = b"".join(records_in(kafka, topic_name))
    assert len(ledger["personal"]) > 80
    assert [text for text in ledger["personal"] if text.encode() in records] == []


def test_a_simulator_that_gets_sigterm_settles_what_it_has_sent(tmp_path: Path, gateway: EmbeddedGateway) -> None:
    with simulator(gateway, tmp_path, "--games", "5", "--rate", "3000", "--seed", "43") as running:
        eventually(lambda: (tmp_path / "acknowledged").exists() and (tmp_path / "acknowledged").stat().st_size > 0)
        running.send_signal(signal.SIGTERM)
        output, _ = running.communicate(timeout=120)

    assert running.returncode == 0, output
    ledger = json.loads((tmp_path / "ledger.json").read_text())
    assert ledger["unsettled"] == ledger["refused"] == 0
    assert ledger["sent"] == ledger["acknowledged"] + sum(ledger["rejected"].values()) < 1_000_000
