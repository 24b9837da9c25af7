"""Authentication of requests: the games' keys, read from a file, and the HMAC signature over timestamp and body.

    signature = hex(HMAC-SHA256(secret, timestamp + "." + body))

Source: RFC 2104 (HMAC). The timestamp is part of what is signed, so that a body can't be replayed under a later one.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Self

import msgspec

from gamelake.model.credentials import WatchedFile
from gamelake.model.errors import SettingsError
from gamelake.model.games import GamesContract, SnakeName
from services.gateway.errors import UnknownSenderError

# 128 bits, in whatever alphabet.
_Secret = Annotated[str, msgspec.Meta(min_length=32, max_length=256)]


class Role(StrEnum):
    """What a key is for: to send a game's events, or to look after its players."""

    GAME = "game"
    SUPPORT = "support"


class GameKey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A key of a game; it has two secrets while one is replaced by the other. `rate` is in events per second."""

    id: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
    game: SnakeName
    secrets: Annotated[tuple[_Secret, ...], msgspec.Meta(min_length=1, max_length=2)]
    rate: Annotated[int, msgspec.Meta(ge=1, le=10_000_000)] = 20_000
    role: Role = Role.GAME

    @property
    def secret_bytes(self) -> tuple[bytes, ...]:
        """The secrets as they sign."""
        return tuple(secret.encode() for secret in self.secrets)

    def __repr__(self) -> str:
        """Without the secrets: keys stand in tracebacks."""
        return f"GameKey(id={self.id!r}, game={self.game!r})"


class _KeyFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    keys: Annotated[tuple[GameKey, ...], msgspec.Meta(min_length=1)]


def read_keys(file: Path, contract: GamesContract) -> Mapping[str, GameKey]:
    """Read the keys by their ids.

    Raises:
        SettingsError: the file can't be read, is not made so, or names a game that the contract lacks; it says nothing
            of what the file holds.
    """
    try:
        found = msgspec.yaml.decode(file.read_bytes(), type=_KeyFile).keys
    except OSError as error:
        raise SettingsError(f"INGEST_KEYS_FILE is '{file}', which can't be read") from error
    except (msgspec.DecodeError, ValueError) as error:
        place = str(error).rpartition(" - at ")[2] if " - at " in str(error) else "its start"
        raise SettingsError(f"INGEST_KEYS_FILE is '{file}', which is not a list of keys (at {place})") from None
    games = {game.name for game in contract.games}
    if unknown := sorted({key.game for key in found} - games):
        raise SettingsError(
            f"INGEST_KEYS_FILE is '{file}', which names games that contracts/games.yaml lacks: {unknown}"
        )
    if len({key.id for key in found}) != len(found):
        raise SettingsError(f"INGEST_KEYS_FILE is '{file}', in which a key's id stands twice")
    return {key.id: key for key in found}


class Keyring:
    """The keys that are good now. A file that was changed for the worse leaves them as they were."""

    def __init__(self, file: Path, contract: GamesContract) -> None:
        self._file = WatchedFile(file, partial(read_keys, contract=contract), "the games' keys")

    def find(self, key_id: str) -> GameKey | None:
        """The key of an id."""
        return self._file.now.get(key_id)

    def refresh(self) -> None:
        """Look whether the file has changed, and take what it says now."""
        self._file.refresh()


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
