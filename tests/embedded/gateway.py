"""The ingest gateway as a process, and a game that sends to it."""

import http.client
import json
import time
import urllib.request
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import msgspec

from services.gateway.authentication import KEY_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, sign
from tests.support.process_table import descendants_of, peak_mib, resident_mib
from tools.embedded.gateway import EmbeddedGateway, GatewayBackend
from tools.embedded.ports import HOST
from tools.embedded.process import ChildProcess

KEY, SECRET = "archery-1", "a-secret-that-only-a-test-could-love"
# The key of a game with a low rate.
LIMITED_KEY, LIMITED_RATE = "bingo-1", 500
# A support key of the first game.
SUPPORT_KEY = "archery-support"
_KEYS = f"""\
keys:
  - {{id: {SUPPORT_KEY}, game: archery_duel, role: support, secrets: [{SECRET}]}}
  - {{id: {KEY}, game: archery_duel, secrets: [{SECRET}], rate: 10000000}}
  - {{id: {LIMITED_KEY}, game: bingo_harbor, secrets: [{SECRET}], rate: {LIMITED_RATE}}}
"""
_TIMEOUT_SECONDS = 60


def audit_topic_of(topic: str) -> str:
    """The topic of the audit, for a gateway that sends events to a topic."""
    return f"{topic}-audit"


class BatchResult(msgspec.Struct):
    """The body of a response 200."""

    accepted: int
    rejected: list[dict[str, str | int]]


@dataclass(frozen=True, slots=True)
class Reply:
    """The response to a request."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def result(self) -> BatchResult:
        """The result of a batch, of a response 200."""
        assert self.status == 200, self
        return msgspec.json.decode(self.body, type=BatchResult)


@dataclass(frozen=True, slots=True)
class Gateway:
    """The running service."""

    service: EmbeddedGateway
    topic: str

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        bootstrap_servers: str,
        registry_url: str,
        topic: str,
        certificates: Path | None = None,
        **settings: str,
    ) -> Self:
        """Start the service with the keys of two games, by HTTPS with certificates, and wait until it is healthy.

        Support calls need the topic `audit_topic_of(topic)`, which the caller creates.
        """
        backing = GatewayBackend(bootstrap_servers=bootstrap_servers, registry_url=registry_url, topic=topic)
        audit = {"GAMELAKE_AUDIT_SUPPORT_CALLS_TOPIC": audit_topic_of(topic)}
        gateway = cls(EmbeddedGateway(folder, backing, audit | settings, certificates), topic)
        folder.mkdir(parents=True, exist_ok=True)
        gateway.service.keys_file.write_text(_KEYS)
        gateway.service.start()
        return gateway

    @property
    def port(self) -> int:
        return self.service.port

    @property
    def folder(self) -> Path:
        """The folder of its vault, its keys and its log."""
        return self.service.directory

    @property
    def process(self) -> ChildProcess:
        """The process of the latest start."""
        return self.service.process

    def restart(self) -> None:
        """Start the service again after it has ended."""
        self.service.start()

    def resident_mib(self) -> float:
        """The resident memory of all of its processes."""
        return resident_mib({self.process.pid} | descendants_of(self.process.pid))

    def peak_mib(self) -> float:
        """The peak memory of its processes since the latest start."""
        return peak_mib({self.process.pid} | descendants_of(self.process.pid))

    def log(self) -> bytes:
        """The log, of all starts."""
        return self.process.program.log_file.read_bytes()

    def metrics(self) -> bytes:
        """The metrics of all its processes, from the port that games can't reach."""
        with urllib.request.urlopen(f"http://{HOST}:{self.service.metrics_port}/metrics", timeout=10) as answer:
            return bytes(answer.read())

    def get(self, path: str) -> Reply:
        return self._request("GET", path, b"", {})

    def send(self, body: bytes, source: str = HOST, **headers: str) -> Reply:
        """Send a signed body from an address; given headers replace the default ones; their names have _ for -."""
        return self._request("POST", "/v1/events", *self._signed(body, headers), source)

    def evaluate(self, content: object, flag: str = "", **headers: str) -> Reply:
        """Send a signed evaluation of one experiment, or of all; given headers replace the default ones."""
        path = f"/ofrep/v1/evaluate/flags/{flag}".removesuffix("/")
        return self._request("POST", path, *self._signed(json.dumps(content).encode(), headers))

    @staticmethod
    def _signed(body: bytes, headers: Mapping[str, str]) -> tuple[bytes, Mapping[str, str]]:
        timestamp = str(int(time.time()))
        defaults = {
            "content-type": "application/json",
            KEY_HEADER: KEY,
            TIMESTAMP_HEADER: timestamp,
            SIGNATURE_HEADER: sign(SECRET.encode(), timestamp, body),
        }
        return body, defaults | {name.replace("_", "-"): value for name, value in headers.items()}

    def _request(self, method: str, path: str, body: bytes, headers: Mapping[str, str], source: str = HOST) -> Reply:
        connection = http.client.HTTPConnection(HOST, self.port, _TIMEOUT_SECONDS, (source, 0))
        if tls := self.service.tls:
            connection = http.client.HTTPSConnection(
                HOST, self.port, timeout=_TIMEOUT_SECONDS, source_address=(source, 0), context=tls
            )
        try:
            connection.request(method, path, body or None, dict(headers))
            response = connection.getresponse()
            return Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()


def events(count: int, **fields: object) -> list[dict[str, object]]:
    now = datetime.now(UTC).isoformat()
    return [
        {"event_id": str(uuid.uuid4()), "event_name": "tap", "event_time": now, "gamer_id": f"p{number % 20}"} | fields
        for number in range(count)
    ]


def body_of(some: Sequence[object]) -> bytes:
    return json.dumps({"events": some}).encode()
