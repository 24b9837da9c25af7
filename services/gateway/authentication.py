"""Authentication of requests: the games' keys, read from a file, and the HMAC signature over timestamp and body.

    signature = hex(HMAC-SHA256(secret, timestamp + "." + body))

Source: RFC 2104 (HMAC). The signature covers the timestamp, so that a body can't be replayed under a later one.
"""

import hmac
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Self

import msgspec

from gamelake.contract.games import GamesContract, SnakeName
from gamelake.model.credentials import WatchedFile
from gamelake.model.errors import SettingsError
from services.gateway.errors import AuthenticationError

KEY_HEADER = "gamelake-key"
TIMESTAMP_HEADER = "gamelake-timestamp"
SIGNATURE_HEADER = "gamelake-signature"
_TIMESTAMP_DIGITS = 12
# One text for all causes but the sender's clock, so that guessing keys gives no information.
_REFUSAL = f"{KEY_HEADER}, {TIMESTAMP_HEADER} and {SIGNATURE_HEADER} do not authenticate a key that is valid now"

# 128 bits, in any alphabet.
_Secret = Annotated[str, msgspec.Meta(min_length=32, max_length=256)]


class Role(StrEnum):
    """The permission of a key: to send a game's events, or to export and forget its players."""

    GAME = "game"
    SUPPORT = "support"


class Quota(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limits of a key in a day (UTC): events, and bytes of bodies as they are sent; None is any number."""

    events: Annotated[int, msgspec.Meta(ge=1)] | None = None
    bytes: Annotated[int, msgspec.Meta(ge=1)] | None = None


class GameKey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A key of a game; it has two secrets while one is replaced by the other. `rate` is in events per second."""

    id: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
    game: SnakeName
    secrets: Annotated[tuple[_Secret, ...], msgspec.Meta(min_length=1, max_length=2)]
    rate: Annotated[int, msgspec.Meta(ge=1, le=10_000_000)] = 20_000
    quota: Quota | None = None
    role: Role = Role.GAME

    @property
    def secret_bytes(self) -> tuple[bytes, ...]:
        """The secrets as bytes, for signing."""
        return tuple(secret.encode() for secret in self.secrets)

    def __repr__(self) -> str:
        """Without the secrets: keys appear in tracebacks."""
        return f"GameKey(id={self.id!r}, game={self.game!r})"


class _KeyFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    keys: Annotated[tuple[GameKey, ...], msgspec.Meta(min_length=1)]


def read_keys(file: Path, contract: GamesContract) -> Mapping[str, GameKey]:
    """Read the keys by their ids.

    Raises:
        SettingsError: the file can't be read, is malformed, or names a game that the contract lacks. The message
            contains nothing of the file's content.
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
        raise SettingsError(f"INGEST_KEYS_FILE is '{file}', in which a key id is used twice")
    return {key.id: key for key in found}


class Keyring:
    """The keys that are valid now; a changed file that is invalid leaves them as they were."""

    def __init__(self, file: Path, contract: GamesContract) -> None:
        self._file = WatchedFile(file, partial(read_keys, contract=contract), "the games' keys")

    def find(self, key_id: str) -> GameKey | None:
        """Return the key with this id."""
        return self._file.now.get(key_id)

    def all_keys(self) -> Collection[GameKey]:
        """Return all keys that are valid now."""
        return self._file.now.values()

    def refresh(self) -> None:
        """Read the file again if it has changed."""
        self._file.refresh()


@dataclass(frozen=True, slots=True)
class SignatureHeaders:
    """The signature headers of a request; the timestamp is in whole seconds since 1970."""

    key: str
    timestamp: str
    signature: str

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> Self:
        """Read them from a request's headers; a missing header is empty."""
        get = headers.get
        return cls(get(KEY_HEADER, ""), get(TIMESTAMP_HEADER, ""), get(SIGNATURE_HEADER, ""))


def sign(secret: bytes, timestamp: str, body: bytes) -> str:
    """Return the signature of a body, in lower-case hexadecimal."""
    return hmac.digest(secret, timestamp.encode() + b"." + body, "sha256").hex()


class Authenticator:
    """Checks requests against the games' keys; `window` is how far a sender's clock may be off."""

    def __init__(self, keyring: Keyring, window: timedelta) -> None:
        self._keyring = keyring
        self._window_seconds = window.total_seconds()

    def find_game_key(self, headers: SignatureHeaders, now: float) -> GameKey:
        """Find the key of a request to send events, before its body is read; `now` in seconds since 1970.

        Raises:
            AuthenticationError: the timestamp is outside the window, there is no such key, or it has another role.
        """
        key = self.find_key(headers, now)
        if key.role is not Role.GAME:
            raise AuthenticationError(_REFUSAL)
        return key

    def find_key(self, headers: SignatureHeaders, now: float) -> GameKey:
        """Find the key of a request, of any role; `now` in seconds since 1970.

        Raises:
            AuthenticationError: the timestamp is outside the window, or there is no such key.
        """
        # Before the key: the message about the clock must be the same for every key.
        self._require_timely(headers.timestamp, now)
        key = self._keyring.find(headers.key)
        if key is None:
            raise AuthenticationError(_REFUSAL)
        return key

    def verify(self, key: GameKey, headers: SignatureHeaders, body: bytes) -> None:
        """Compare the signature with those of the key's secrets, in constant time.

        Raises:
            AuthenticationError: none of the key's secrets has signed this body.
        """
        given = headers.signature.encode()
        secrets = key.secret_bytes
        matches = [hmac.compare_digest(sign(each, headers.timestamp, body).encode(), given) for each in secrets]
        if not any(matches):
            raise AuthenticationError(_REFUSAL)

    def _require_timely(self, timestamp: str, now: float) -> None:
        if not timestamp.isascii() or not timestamp.isdigit() or len(timestamp) > _TIMESTAMP_DIGITS:
            raise AuthenticationError(_REFUSAL)
        ahead = int(timestamp) - now
        if abs(ahead) > self._window_seconds:
            direction = "ahead of" if ahead > 0 else "behind"
            raise AuthenticationError(
                f"{TIMESTAMP_HEADER} is {abs(ahead):.0f} s {direction} the gateway's clock, more than the "
                f"{self._window_seconds:.0f} s that it may be: set the sender's clock, or sign with the time of the "
                "header date of this response"
            )
