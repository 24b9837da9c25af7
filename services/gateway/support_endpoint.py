"""Requests of support staff about one player: to forget the player, or to hand out what is kept.

    signature = hex(HMAC-SHA256(secret, timestamp + "." + method + " " + path))

The path is signed as it is once its percent-encoding is undone, so that a signature holds for one player and one verb.
The player's name stands in the path: nothing of a request is ever logged but the key's id.
"""

import asyncio
import logging
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import msgspec
from google.protobuf.message import Message

from gamelake.privacy.export import personal_data
from gamelake.privacy.vault.keyring import VaultKeyring
from gamelake.privacy.vault.vault import StoredPlayer, Vault
from services.gateway import metrics
from services.gateway.authentication import Authenticator, Claim, GameKey, Role
from services.gateway.errors import NoSuchPlayerError, NotAllowedError, RefusedError
from services.gateway.personal.vault_client import vault_asked
from services.gateway.responses import Answer, page, refused, wrong_method

log = logging.getLogger(__name__)

PLAYERS_PATH = "/v1/players/"
PSEUDONYM_HEADER = "gamelake-pseudonym"
_VERBS = ("DELETE", "GET")


def signed_text(method: str, player: str) -> bytes:
    """What a request about a player signs in the place of a body."""
    return f"{method} {PLAYERS_PATH}{player}".encode()


@dataclass(frozen=True, slots=True)
class SupportEndpoint:
    """Forgets players and hands out their data; `event` is the submitted event's class."""

    authenticator: Authenticator
    vault: Vault
    keyring: VaultKeyring
    event: type[Message]

    async def answer(self, scope: Any) -> Answer:  # noqa: ANN401 # RSGI's, which has no types
        """Answer a request; whatever is wrong with it is an answer too."""
        if scope.method not in _VERBS:
            return wrong_method(", ".join(_VERBS))
        player = scope.path.removeprefix(PLAYERS_PATH)
        try:
            key = self._recognise(scope, player)
            serve = self._forget if scope.method == "DELETE" else self._export
            with vault_asked():
                return await asyncio.to_thread(serve, key, player)
        except RefusedError as error:
            return refused(error)

    def _recognise(self, scope: Any, player: str) -> GameKey:  # noqa: ANN401 # see above
        claim = Claim.of(scope.headers)
        key = self.authenticator.recognise_anybody(claim, time.time())
        self.authenticator.check(key, claim, signed_text(scope.method, player))
        if key.role is not Role.SUPPORT:
            raise NotAllowedError("this key sends events; players are support's")
        return key

    def _forget(self, key: GameKey, player: str) -> Answer:
        stored = self._player(key, player)
        erasure = self.vault.forget(stored.token, key.id)
        if erasure is None:
            raise NoSuchPlayerError("there is no such player")
        metrics.count_looked_after(key.game, metrics.Action.ERASED)
        log.info("a player of %s was forgotten: erasure %d, by the key %s", key.game, erasure.number, key.id)
        return Answer(HTTPStatus.NO_CONTENT, [(PSEUDONYM_HEADER, erasure.pseudonym)], b"")

    def _export(self, key: GameKey, player: str) -> Answer:
        export = personal_data(self.vault, self.keyring.now, self._player(key, player), self.event)
        metrics.count_looked_after(key.game, metrics.Action.EXPORTED)
        log.info("a player of %s was handed out, by the key %s", key.game, key.id)
        return page("application/json", msgspec.json.encode(export))

    def _player(self, key: GameKey, player: str) -> StoredPlayer:
        self.keyring.refresh()
        token = self.keyring.now.token(key.game, player)
        stored = self.vault.find([token]).get(token)
        if stored is None:
            raise NoSuchPlayerError("there is no such player")
        return stored
