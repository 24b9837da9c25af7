"""`/v1/players/{id}`: requests of support staff to forget a player (DELETE) or to export the player's data (GET).

    signature = hex(HMAC-SHA256(secret, timestamp + "." + method + " " + path))

The path is signed with its percent-encoding undone, so that a signature holds for one player and one method. As it
has the player's name, only the key's id of a request is logged.

Kafka confirms a record of each call for the audit before the call is answered: without it the answer is 503, no data
is disclosed and no player is erased.
"""

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any

import msgspec
from google.protobuf.message import Message

from gamelake.model.logs import event_logger
from gamelake.privacy.export import personal_data
from gamelake.privacy.support_calls import SupportAction, SupportCall, encode_call
from gamelake.privacy.vault.keyring import VaultKeyring
from gamelake.privacy.vault.vault import StoredPlayer, Vault
from services.gateway import metrics
from services.gateway.authentication import Authenticator, GameKey, Role, SignatureHeaders
from services.gateway.errors import AuthenticationError, ForbiddenError, PlayerNotFoundError, RefusedError
from services.gateway.kafka_producer import EventProducer
from services.gateway.personal.vault_client import vault_failures_as_unavailable
from services.gateway.responses import Response, content_response, method_not_allowed, refusal_response

log = event_logger(__name__)

PLAYERS_PATH = "/v1/players/"
PSEUDONYM_HEADER = "gamelake-pseudonym"
_ACTIONS = {"DELETE": SupportAction.ERASURE, "GET": SupportAction.EXPORT}
_STATUSES = {SupportAction.ERASURE: HTTPStatus.NO_CONTENT, SupportAction.EXPORT: HTTPStatus.OK}


def signed_text(method: str, player: str) -> bytes:
    """Return the text that a request about a player signs in place of a body."""
    return f"{method} {PLAYERS_PATH}{player}".encode()


@dataclass(frozen=True, slots=True)
class SupportEndpoint:
    """Forgets players and exports their data.

    Each signature is valid once: the vault, which all processes share, remembers it until it expires.

    Attributes:
        event: the class of the submitted event.
        audit: sends to the audit's topic of support calls.
    """

    authenticator: Authenticator
    signature_window: timedelta
    vault: Vault
    keyring: VaultKeyring
    event: type[Message]
    audit: EventProducer

    async def respond(self, scope: Any) -> Response:  # noqa: ANN401 # RSGI's, which has no types
        """Process a request; an invalid one gets a response too."""
        action = _ACTIONS.get(scope.method)
        if action is None:
            return method_not_allowed(", ".join(_ACTIONS))
        player = scope.path.removeprefix(PLAYERS_PATH)
        try:
            signature = SignatureHeaders.of(scope.headers)
            key = self._authenticate(scope, signature, player)
            with vault_failures_as_unavailable():
                await asyncio.to_thread(self._require_unused, signature)
                stored = await asyncio.to_thread(self._find, key, player)
                await self._record(key, action, stored)
                if stored is None:
                    raise PlayerNotFoundError("there is no such player")
                process = self._forget if action is SupportAction.ERASURE else self._export
                return await asyncio.to_thread(process, key, stored)
        except RefusedError as error:
            return refusal_response(error)

    async def _record(self, key: GameKey, action: SupportAction, stored: StoredPlayer | None) -> None:
        """Have the audit record a call; returns when Kafka has confirmed it.

        Raises:
            UnavailableError: Kafka has not.
        """
        call = SupportCall(
            called_at=datetime.now(UTC),
            key_id=key.id,
            role=key.role,
            game=key.game,
            action=action,
            pseudonym=stored.pseudonym if stored else None,
            status=_STATUSES[action] if stored else HTTPStatus.NOT_FOUND,
        )
        await self.audit.send([{"key": key.id, "value": encode_call(call)}])

    def _authenticate(self, scope: Any, signature: SignatureHeaders, player: str) -> GameKey:  # noqa: ANN401 # see above
        key = self.authenticator.find_key(signature, time.time())
        self.authenticator.verify(key, signature, signed_text(scope.method, player))
        if key.role is not Role.SUPPORT:
            raise ForbiddenError("a game's key can only send events; this request needs a key with the role support")
        return key

    def _require_unused(self, signature: SignatureHeaders) -> None:
        # Twice the window: the next request may reach a gateway whose clock is behind this one's.
        expires = datetime.fromtimestamp(int(signature.timestamp), UTC) + 2 * self.signature_window
        if not self.vault.use_signature(bytes.fromhex(signature.signature), expires):
            raise AuthenticationError(
                "this signature was used before: sign each request with the current time, and no two in the same second"
            )

    def _forget(self, key: GameKey, stored: StoredPlayer) -> Response:
        erasure = self.vault.forget(stored.token, key.id)
        if erasure is None:
            raise PlayerNotFoundError("there is no such player")
        metrics.count_player_request(key.game, metrics.Action.ERASED)
        log.info("player_forgotten", game=key.game, erasure=erasure.number, key_id=key.id)
        return Response(HTTPStatus.NO_CONTENT, [(PSEUDONYM_HEADER, erasure.pseudonym)], b"")

    def _export(self, key: GameKey, stored: StoredPlayer) -> Response:
        export = personal_data(self.vault, self.keyring.now, stored, self.event)
        metrics.count_player_request(key.game, metrics.Action.EXPORTED)
        log.info("player_exported", game=key.game, key_id=key.id)
        return content_response("application/json", msgspec.json.encode(export))

    def _find(self, key: GameKey, player: str) -> StoredPlayer | None:
        self.keyring.refresh()
        token = self.keyring.now.token(key.game, player)
        return self.vault.find([token]).get(token)
