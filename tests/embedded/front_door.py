"""The ingest service as a process, and a game that sends to it."""

import base64
import http.client
import json
import os
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

import msgspec

from services.embedded.ports import HOST, accepts_connections, free_port
from services.embedded.process import ChildProcess, Program
from services.embedded.service import REPOSITORY
from services.ingest.signatures import KEY_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, sign

KEY, SECRET = "archery-1", "a-secret-that-only-a-test-could-love"
_START = timedelta(seconds=60)
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


@dataclass(slots=True)
class FrontDoor:
    """The running service."""

    port: int
    folder: Path
    process: ChildProcess
    _program: Program = field(repr=False)

    @classmethod
    def open(cls, folder: Path, *, bootstrap_servers: str, registry_url: str, topic: str, **settings: str) -> Self:
        """Start the service with the keys of one game, and wait until it answers."""
        keys = folder / "keys.yaml"
        keys.write_text(f"keys: [{{id: {KEY}, game: archery_duel, secrets: [{SECRET}], rate: 1000000}}]\n")
        vault_keys = folder / "vault-keys.yaml"
        some_key = base64.b64encode(os.urandom(32)).decode()
        vault_keys.write_text(f"index: {some_key}\ncurrent: first\nkeys: {{first: {some_key}}}\n")
        port = free_port()
        variables = {
            "PYTHONPATH": str(REPOSITORY),
            "GAMELAKE_BOOTSTRAP_SERVERS": bootstrap_servers,
            "GAMELAKE_REGISTRY_URL": registry_url,
            "GAMELAKE_TOPIC": topic,
            "INGEST_KEYS_FILE": str(keys),
            "INGEST_VAULT_FILE": str(folder / "vault.db"),
            "INGEST_VAULT_KEYS_FILE": str(vault_keys),
            "INGEST_PORT": str(port),
        }
        command = (sys.executable, "-m", "services.ingest")
        program = Program(
            name="the ingest service",
            command=command,
            log_file=folder / "ingest.log",
            environment=variables | settings,
        )
        door = cls(port, folder, ChildProcess(program), program)
        door.await_answers()
        return door

    def await_answers(self) -> None:
        """Wait until the service listens."""
        self.process.wait_until(lambda: accepts_connections(self.port), _START)

    def start_again(self) -> None:
        """Start the service anew after it has ended."""
        self.process = ChildProcess(self._program)
        self.await_answers()

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
