"""Who sent a request: a game's key, and a signature over the moment and the body as it was sent.

    signature = hex(HMAC-SHA256(secret, timestamp + "." + body))

Source: RFC 2104 (HMAC). The moment is part of what is signed, so that a body can't be sent again under a later one.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Self

from services.gateway.errors import UnknownSenderError
from services.gateway.keys import GameKey, Keyring, Role

KEY_HEADER = "gamelake-key"
TIMESTAMP_HEADER = "gamelake-timestamp"
SIGNATURE_HEADER = "gamelake-signature"
_TIMESTAMP_DIGITS = 12
# One text for whatever is wrong: who guesses learns nothing from it.
_REFUSAL = f"{KEY_HEADER}, {TIMESTAMP_HEADER} and {SIGNATURE_HEADER} are not those of a game that may send now"


@dataclass(frozen=True, slots=True)
class Claim:
    """Who a request says it is from; the timestamp in whole seconds since 1970."""

    key: str
    timestamp: str
    signature: str

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> Self:
        """What a request's headers say; a header that is not there is empty."""
        get = headers.get
        return cls(get(KEY_HEADER, ""), get(TIMESTAMP_HEADER, ""), get(SIGNATURE_HEADER, ""))


def sign(secret: bytes, timestamp: str, body: bytes) -> str:
    """The signature of a body, in lower-case hexadecimal."""
    return hmac.digest(secret, timestamp.encode() + b"." + body, "sha256").hex()


class Authenticator:
    """Knows the games' keys, and how far a sender's clock may be off."""

    def __init__(self, keyring: Keyring, window: timedelta) -> None:
        self._keyring = keyring
        self._window_seconds = window.total_seconds()

    def recognise(self, claim: Claim, now: float) -> GameKey:
        """The key of the game that a claim names, before its body is there; `now` in seconds since 1970.

        Raises:
            UnknownSenderError: there is no such key, it sends no events, or the timestamp is outside the window.
        """
        key = self.recognise_anybody(claim, now)
        if key.role is not Role.GAME:
            raise UnknownSenderError(_REFUSAL)
        return key

    def recognise_anybody(self, claim: Claim, now: float) -> GameKey:
        """The key that a claim names, whatever it is for; `now` in seconds since 1970.

        Raises:
            UnknownSenderError: there is no such key, or the timestamp is outside the window.
        """
        key = self._keyring.find(claim.key)
        if key is None or not self._is_timely(claim.timestamp, now):
            raise UnknownSenderError(_REFUSAL)
        return key

    def check(self, key: GameKey, claim: Claim, body: bytes) -> None:
        """Compare the signature, in a time that says nothing of how much of it is right.

        Raises:
            UnknownSenderError: none of the key's secrets has signed this body.
        """
        given = claim.signature.encode()
        matches = [hmac.compare_digest(sign(each, claim.timestamp, body).encode(), given) for each in key.secret_bytes]
        if not any(matches):
            raise UnknownSenderError(_REFUSAL)

    def _is_timely(self, timestamp: str, now: float) -> bool:
        if not timestamp.isascii() or not timestamp.isdigit() or len(timestamp) > _TIMESTAMP_DIGITS:
            return False
        return abs(now - int(timestamp)) <= self._window_seconds
