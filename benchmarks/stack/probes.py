"""Probes of the running stack: the topic's end offsets, CPU time of each service; and the simulator for the load."""

import http.client
import socket
import subprocess
from pathlib import Path
from urllib.parse import quote

import msgspec
from confluent_kafka import Consumer, TopicPartition

from benchmarks.results import BenchmarkError
from tools.embedded.service import REPOSITORY
from tools.stack import COMPOSE, kafka, scheme

TOPIC = "events"
STREAM = "ingest_events"
_ENGINE = Path("/var/run/docker.sock")
_ANSWER_SECONDS = 20


class StackMissingError(BenchmarkError):
    """The stack is not running."""


class StackTopicEnds:
    """The end offsets of the topic."""

    def __init__(self) -> None:
        access = kafka("ingest-events")
        self._consumer = Consumer({"group.id": "benchmarks", **access.for_clients()})
        partitions = self._consumer.list_topics(TOPIC, timeout=_ANSWER_SECONDS).topics[TOPIC].partitions
        self._partitions = [TopicPartition(TOPIC, number) for number in partitions]

    def now(self) -> dict[int, int]:
        """The offset that the next record of each partition gets."""
        ask = self._consumer.get_watermark_offsets
        return {each.partition: ask(each, timeout=_ANSWER_SECONDS)[1] for each in self._partitions}


def simulator(rate: int, events: int, *target: str) -> list[str]:
    """Return the command of a simulator of 30 games, in a container of the stack, that sends events without defects."""
    defects = ("late", "future", "undecodable", "unknown-game", "null-time", "duplicate")
    return [
        *(str(COMPOSE / "stack.sh"), "run", "--rm", "--no-deps", "--no-TTY", "tools", "python", "-m"),
        *("tools.simulator", *target, "--games", "30", "--rate", str(rate), "--events", str(events)),
        *(f"--{each}=0" for each in defects),
    ]


def start_simulator(rate: int, events: int) -> subprocess.Popen[bytes]:
    """Start a simulator that sends to Kafka at a rate."""
    registry = f"{scheme()}://registry:8080/apis/ccompat/v7"
    target = ("--target=kafka", f"--topic={TOPIC}", "--bootstrap-servers=kafka:9092", f"--registry-url={registry}")
    log = REPOSITORY / "build/benchmarks/simulator.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        command = simulator(rate, events, *target)
        return subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)


class _Container(msgspec.Struct, rename="pascal"):
    id: str
    labels: dict[str, str]


class _Usage(msgspec.Struct):
    total_usage: int


class _Cpu(msgspec.Struct):
    cpu_usage: _Usage


class _Stats(msgspec.Struct):
    cpu_stats: _Cpu


class _Engine(http.client.HTTPConnection):
    """The Docker engine's API by its socket."""

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(_ENGINE))


def cpu_seconds() -> dict[str, float]:
    """CPU seconds so far of each service of the stack.

    Source: https://docs.docker.com/reference/api/engine/ (ContainerList, ContainerStats).

    Raises:
        StackMissingError: no container of the stack runs.
    """
    filters = quote('{"label":["com.docker.compose.project=gamelake"]}')
    seconds: dict[str, float] = {}
    for container in msgspec.json.decode(_ask(f"/containers/json?filters={filters}"), type=list[_Container]):
        stats = msgspec.json.decode(_ask(f"/containers/{container.id}/stats?stream=false&one-shot=true"), type=_Stats)
        service = container.labels["com.docker.compose.service"]
        seconds[service] = seconds.get(service, 0) + stats.cpu_stats.cpu_usage.total_usage / 1e9
    if not seconds:
        raise StackMissingError("no container of the stack runs: make up")
    return seconds


def _ask(path: str) -> bytes:
    engine = _Engine("localhost", timeout=_ANSWER_SECONDS)
    engine.request("GET", path)
    answer = engine.getresponse().read()
    engine.close()
    return answer
