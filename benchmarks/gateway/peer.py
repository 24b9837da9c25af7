"""The peer: a common implementation with FastAPI, pydantic and aiokafka, that does the work of the gateway.

`python -m benchmarks.gateway.peer`, with the gateway's environment variables. It checks the same signature, reads JSON
events, encrypts personal data into the same vault, and responds once Kafka has confirmed; it has no limits.
"""

import asyncio
import hmac
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import uvicorn
from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]
from fastapi import FastAPI, HTTPException, Request
from google.protobuf.message_factory import GetMessageClass

from benchmarks.gateway.peer_models import Batch, Event
from gamelake.contract.games import load_games
from gamelake.privacy.vault.opening import open_vault
from gamelake.privacy.vault.secrecy import PlayerKey, VaultKeys
from gamelake.privacy.vault.vault import SealedData, StoredPlayer, Vault
from gamelake.schemas.event_schemas import load_schemas, register
from gamelake.schemas.framing import frame_header
from services.gateway.authentication import KEY_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, GameKey, read_keys
from services.gateway.settings import GatewaySettings

_OLDEST, _NEWEST = timedelta(days=400), timedelta(days=1)


@dataclass(slots=True)
class Known:
    """A cached player, and the data that the vault has of the player."""

    key: PlayerKey
    stored: set[bytes] = field(default_factory=set)


class Players:
    """Players and their data, read from the vault once."""

    def __init__(self, vault: Vault, keys: VaultKeys) -> None:
        self._vault = vault
        self._keys = keys
        self._known: dict[tuple[str, str], Known] = {}

    async def of(self, game: str, events: Sequence[Event]) -> list[Known]:
        """The player of each event."""
        names = {event.gamer_id for event in events}
        if unknown := [name for name in names if (game, name) not in self._known]:
            await asyncio.to_thread(self._resolve, game, unknown)
        return [self._known[game, event.gamer_id] for event in events]

    async def store(self, events: Sequence[Event], players: Sequence[Known]) -> None:
        """Encrypt and store personal data that the vault does not have yet."""
        new: list[tuple[Known, bytes]] = []
        for event, player in zip(events, players, strict=True):
            data = event.personal_data()
            if data and data not in player.stored:
                new.append((player, data))
        if new:
            await asyncio.to_thread(self._seal, new)
            for player, data in new:
                player.stored.add(data)

    def _resolve(self, game: str, names: Sequence[str]) -> None:
        tokens = {name: self._keys.token(game, name) for name in names}
        found = dict(self._vault.find(list(tokens.values())))
        missing = [token for token in tokens.values() if token not in found]
        found |= self._vault.take([self._new(game, token) for token in missing], [])
        for name, token in tokens.items():
            self._known.setdefault((game, name), Known(self._keys.unwrap(found[token])))

    def _new(self, game: str, token: bytes) -> StoredPlayer:
        key = PlayerKey.new(game)
        return StoredPlayer(
            token=token, game=game, pseudonym=key.pseudonym, key_id=self._keys.current,
            wrapped_key=self._keys.wrap(key, token),
        )  # fmt: skip

    def _seal(self, new: Sequence[tuple[Known, bytes]]) -> None:
        self._vault.take(
            [],
            [
                SealedData(
                    pseudonym=player.key.pseudonym,
                    fingerprint=player.key.fingerprint(data),
                    sealed=player.key.seal(data),
                )
                for player, data in new
            ],
        )


class Peer:
    """The peer's application."""

    def __init__(self, settings: GatewaySettings) -> None:
        contract = load_games(settings.contracts / "games.yaml")
        schemas = load_schemas(settings.contracts, settings.contract_version)
        ids = register(schemas, registry_url=settings.registry_url, topic=settings.topic)
        self._settings = settings
        self._games = {game.name: game for game in contract.games}
        self._message = GetMessageClass(schemas[-1].message)
        self._header = frame_header(ids[-1])
        self._keys = read_keys(settings.keys_file, contract)
        self._players = Players(open_vault(settings.vault.access), VaultKeys.read(settings.vault.keys_file))
        self._producer: AIOKafkaProducer
        self.app = FastAPI(lifespan=self._lifespan)
        self.app.get("/healthz")(self._health)
        self.app.post("/v1/events")(self._events)

    @asynccontextmanager
    async def _lifespan(self, _app: FastAPI) -> AsyncIterator[None]:
        self._producer = AIOKafkaProducer(
            bootstrap_servers=self._settings.kafka.bootstrap_servers, enable_idempotence=True, acks="all", linger_ms=5
        )
        await self._producer.start()
        yield
        await self._producer.stop()

    async def _health(self) -> str:
        return "ok"

    async def _events(self, request: Request) -> dict[str, object]:
        body = await request.body()
        key = self._sender(request, body)
        try:
            events = Batch.model_validate_json(body).events
        except ValueError:
            raise HTTPException(400, "the body is invalid") from None
        now = datetime.now(UTC)
        if any(not now - _OLDEST < event.event_time < now + _NEWEST for event in events):
            raise HTTPException(400, "an event_time is out of bounds")
        players = await self._players.of(key.game, events)
        await self._players.store(events, players)
        await self._send(key, events, players, now)
        return {"accepted": len(events), "rejected": []}

    def _sender(self, request: Request, body: bytes) -> GameKey:
        key = self._keys.get(request.headers.get(KEY_HEADER, ""))
        timestamp = request.headers.get(TIMESTAMP_HEADER, "0")
        if key is None or abs(time.time() - int(timestamp)) > self._settings.signature_window.total_seconds():
            raise HTTPException(401)
        signed = timestamp.encode() + b"." + body
        given = request.headers.get(SIGNATURE_HEADER, "")
        if not any(hmac.compare_digest(hmac.digest(s, signed, "sha256").hex(), given) for s in key.secret_bytes):
            raise HTTPException(401)
        return key

    async def _send(self, key: GameKey, events: Sequence[Event], players: Sequence[Known], now: datetime) -> None:
        name = self._games[key.game].game_name
        waiting = []
        for event, player in zip(events, players, strict=True):
            message = self._message(**event.for_the_lake(), gamer_id=player.key.pseudonym)
            message.event_time.FromDatetime(event.event_time)  # type: ignore[attr-defined]
            message.ingest_time.FromDatetime(now)  # type: ignore[attr-defined]
            if event.event_params.client_event_time is not None:
                message.event_params.client_event_time.FromDatetime(event.event_params.client_event_time)  # type: ignore[attr-defined]
            message.game_name = event.game_name or name  # type: ignore[attr-defined]
            value = self._header + message.SerializeToString()
            waiting.append(await self._producer.send(self._settings.topic, value, player.key.pseudonym.encode()))
        await asyncio.gather(*waiting)


def main() -> None:
    """Serve until SIGTERM."""
    settings = GatewaySettings.from_env()
    uvicorn.run(
        Peer(settings).app, host=settings.host, port=settings.port, loop="uvloop", log_level="warning", access_log=False
    )


if __name__ == "__main__":
    main()
