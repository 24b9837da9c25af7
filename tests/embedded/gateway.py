"""The ingest service as a process, and a game that sends to it."""

import http.client
import json
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import msgspec

from services.gateway.authentication import KEY_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, sign
from tests.process_table import descendants_of, peak_mib, resident_mib
from tools.embedded.gateway import EmbeddedGateway, GatewayBackend
from tools.embedded.ports import HOST
from tools.embedded.process import ChildProcess

KEY, SECRET = "archery-1", "a-secret-that-only-a-test-could-love"
# A game without a limit that matters, and one with.
LIMITED_KEY, LIMITED_RATE = "bingo-1", 500
# Who looks after the players of the first.
SUPPORT_KEY = "archery-support"
_KEYS = f"""\
keys:
  - {{id: {SUPPORT_KEY}, game: archery_duel, role: support, secrets: [{SECRET}]}}
  - {{id: {KEY}, game: archery_duel, secrets: [{SECRET}], rate: 10000000}}
  - {{id: {LIMITED_KEY}, game: bingo_harbor, secrets: [{SECRET}], rate: {LIMITED_RATE}}}
"""
_ANSWER_SECONDS = 60


class Taken(msgspec.Struct):
    """What the service says of a body that it has looked at."""

    accepted: int
    rejected: list[dict[str, str | int]]


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer to a request."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def taken(self) -> Taken:
        """What became of the events."""
        assert self.status == 200, self
        return msgspec.json.decode(self.body, type=Taken)


@dataclass(frozen=True, slots=True)
class Gateway:
    """The running service."""

    service: EmbeddedGateway
    topic: str

    @classmethod
    def open(cls, folder: Path, *, bootstrap_servers: str, registry_url: str, topic: str, **settings: str) -> Self:
        """Start the service with the keys of two games, and wait until it answers."""
        backing = GatewayBackend(bootstrap_servers=bootstrap_servers, registry_url=registry_url, topic=topic)
        gateway = cls(EmbeddedGateway(folder, backing, settings), topic)
        folder.mkdir(parents=True, exist_ok=True)
        gateway.service.keys_file.write_text(_KEYS)
        gateway.service.start()
        return gateway

    @property
    def port(self) -> int:
        """Where it listens."""
        return self.service.port

    @property
    def folder(self) -> Path:
        """Where it keeps its vault, its keys and its log."""
        return self.service.directory

    @property
    def process(self) -> ChildProcess:
        """The process of the latest start."""
        return self.service.process

    def start_again(self) -> None:
        """Start the service anew after it has ended."""
        self.service.start()

    def resident_mib(self) -> float:
        """The memory that all of the service's processes hold."""
        return resident_mib({self.process.pid} | descendants_of(self.process.pid))

    def peak_mib(self) -> float:
        """The most memory that its processes have held since the latest start."""
        return peak_mib({self.process.pid} | descendants_of(self.process.pid))

    def log(self) -> bytes:
        """What the service has said, in all of its lives."""
        return self.process.program.log_file.read_bytes()

    def get(self, path: str) -> Reply:
        """Ask for a page."""
        return self._ask("GET", path, b"", {})

    def send(self, body: bytes, **headers: str) -> Reply:
        """Send a signed body; headers that are given replace the usual ones, with - for _."""
        timestamp = str(int(time.time()))
        usual = {
            "content-type": "application/json",
            KEY_HEADER: KEY,
            TIMESTAMP_HEADER: timestamp,
            SIGNATURE_HEADER: sign(SECRET.encode(), timestamp, body),
        }
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return self._ask("POST", "/v1/events", body, usual | given)

    def _ask(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Reply:
        connection = http.client.HTTPConnection(HOST, self.port, timeout=_ANSWER_SECONDS)
        try:
            connection.request(method, path, body or None, dict(headers))
            answer = connection.getresponse()
            return Reply(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()


def events(count: int, **fields: object) -> list[dict[str, object]]:
    """Good events of now."""
    now = datetime.now(UTC).isoformat()
    return [
        {"event_id": str(uuid.uuid4()), "event_name": "tap", "event_time": now, "gamer_id": f"p{number % 20}"} | fields
        for number in range(count)
    ]


def body_of(some: Sequence[object]) -> bytes:
    """The events as JSON."""
    return json.dumps({"events": some}).encode()
