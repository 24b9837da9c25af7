"""The endpoint for flags with experiments in a file, and requests to it without a socket."""

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import yaml

from services.gateway.authentication import KEY_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, Authenticator, Keyring, sign
from services.gateway.flags.endpoint import FLAGS_PATH, MOST_BODY_BYTES, FlagsEndpoint
from services.gateway.flags.experiments import ExperimentFlags
from services.gateway.limits.memory_budget import MemoryBudget
from services.gateway.limits.rates import RateLimits
from services.gateway.request_body import BodyReader
from services.gateway.responses import Response
from services.gateway.settings import BodyLimits
from tests.unit.gateway.events import contract

GAME, OTHER_GAME = "kart_rumble", "archery_duel"
GAMES_FILE = Path("contracts/games.yaml")
SECRET = "a-secret-that-only-a-test-could-love"  # noqa: S105 # only tests know it
SUPPORT_KEY, SLOW_KEY = "support", "slow"
KEYS = f"""\
keys:
  - {{id: {GAME}, game: {GAME}, secrets: [{SECRET}]}}
  - {{id: {OTHER_GAME}, game: {OTHER_GAME}, secrets: [{SECRET}]}}
  - {{id: {SUPPORT_KEY}, game: {GAME}, role: support, secrets: [{SECRET}]}}
  - {{id: {SLOW_KEY}, game: {GAME}, secrets: [{SECRET}], rate: 1}}
"""
TODAY = datetime(2026, 11, 30, 12, tzinfo=UTC)
RUNNING, OVER, FUTURE, CONDITIONAL = "running", "over", "future", "conditional"


def experiment(name: str, game: str = GAME, **changes: object) -> dict[str, object]:
    """An experiment of two variants that runs on `TODAY`."""
    return {
        "name": name,
        "game": game,
        "description": "?",
        "variants": [{"name": "control", "share": 0.5}, {"name": "offer", "share": 0.5}],
        "start": "2026-11-01",
        "primary": "bookings",
    } | changes


EXPERIMENTS = [
    experiment(RUNNING),
    experiment(OVER, start="2026-10-01", end="2026-11-29"),
    experiment(FUTURE, start="2026-12-01"),
    experiment(CONDITIONAL, eligibility={"platforms": ["ios"]}),
    experiment("of_another_game", OTHER_GAME),
]


def write_experiments(file: Path, experiments: object) -> None:
    file.write_text(yaml.safe_dump({"experiments": experiments}), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class _Body:
    """The body of a request, as the server gives it."""

    content: bytes

    async def __call__(self) -> bytes:
        """All of it."""
        return self.content

    async def __aiter__(self) -> Any:  # noqa: ANN401 # an asynchronous generator
        """Its chunks."""
        yield self.content


@dataclass(frozen=True, slots=True)
class Flags:
    """The endpoint, and the file of its experiments."""

    endpoint: FlagsEndpoint
    file: Path

    @classmethod
    def open(cls, folder: Path, experiments: object = EXPERIMENTS, memory: int = 2**20) -> Self:
        """The endpoint with experiments, on `TODAY`."""
        file, keys = folder / "experiments.yaml", folder / "keys.yaml"
        if experiments is not None:
            write_experiments(file, experiments)
        keys.write_text(KEYS, encoding="utf-8")
        limits = BodyLimits(size=MOST_BODY_BYTES, decompressed=2**20, events=1, timeout=timedelta(seconds=10))
        flags = ExperimentFlags(file, GAMES_FILE, TODAY.timestamp)
        endpoint = FlagsEndpoint(
            experiments=flags,
            authenticator=Authenticator(Keyring(keys, contract()), timedelta(seconds=300)),
            rates=RateLimits(timedelta(seconds=2)),
            body_reader=BodyReader(limits),
            memory=MemoryBudget(memory),
        )
        flags.refresh()
        return cls(endpoint, file)

    def post(self, flag: str | None = None, body: object = None, key: str = GAME, **headers: str) -> Response:
        """Send a signed request; given headers replace the right ones; their names have _ for -."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        timestamp = str(int(time.time()))
        right = {
            "content-type": "application/json",
            "content-length": str(len(content)),
            KEY_HEADER: key,
            TIMESTAMP_HEADER: timestamp,
            SIGNATURE_HEADER: sign(SECRET.encode(), timestamp, content),
        }
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.send("POST", FLAGS_PATH if flag is None else f"{FLAGS_PATH}/{flag}", right | given, content)

    def send(self, method: str, path: str, headers: Mapping[str, str], content: bytes) -> Response:
        """Send any request."""
        scope = SimpleNamespace(method=method, path=path, headers=headers)
        return asyncio.run(self.endpoint.respond(scope, _Body(content)))


def context(player: object = "player-1", **attributes: object) -> dict[str, object]:
    return {"context": {"targetingKey": player} | attributes}


def answer_of(response: Response) -> Any:  # noqa: ANN401 # JSON
    return json.loads(response.body)
