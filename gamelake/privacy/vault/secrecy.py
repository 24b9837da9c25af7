"""Encryption: a key for each player, wrapped by a key-encryption key that can be rotated.

AES-256-GCM of the library `cryptography`; the owner of a ciphertext is the associated data.

Source: NIST SP 800-38D (GCM; nonces of 96 random bits, so at most 2^32 messages per key); RFC 2104 (HMAC); RFC 5869
(HKDF-Expand, one key for each purpose).
"""

import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from gamelake.privacy.vault.key_file import KEY_BYTES, read_key_file
from gamelake.privacy.vault.vault import StoredPlayer

_NONCE_BYTES = 12
_NAME_BYTES = 16
_SHA256 = "sha256"


class TamperedError(Exception):
    """A ciphertext is not what was written for this player: another key, another owner, or a changed byte."""


class UnknownKeyError(TamperedError):
    """A player's key is wrapped by a key-encryption key that is not in the file of keys."""


class PlayerKey:
    """The key of one player of one game. Without it the player's data is unreadable.

    A service caches a hundred thousand of them, so a cipher, which takes 2 KiB, is created only when needed.
    """

    __slots__ = ("_naming", "game", "pseudonym", "secret")

    def __init__(self, game: str, secret: bytes) -> None:
        self.game = game
        self.secret = secret
        self._naming = _derived(secret, b"naming")
        # The player's pseudonym: 32 hexadecimal digits, the same as long as the key is there.
        self.pseudonym = hmac.digest(self._naming, b"pseudonym", _SHA256)[:_NAME_BYTES].hex()

    @classmethod
    def new(cls, game: str) -> "PlayerKey":
        """Create a random key."""
        return cls(game, os.urandom(KEY_BYTES))

    def __repr__(self) -> str:
        """Without the secret, which would appear in tracebacks."""
        return f"PlayerKey(game={self.game!r}, pseudonym={self.pseudonym!r})"

    def seal(self, data: bytes) -> bytes:
        """Encrypt data of the player."""
        return _seal(self._cipher(), data, self._belongs_to())

    def open(self, sealed: bytes) -> bytes:
        """Undo `seal`.

        Raises:
            TamperedError: it was not sealed with this key.
        """
        return _open(self._cipher(), sealed, self._belongs_to())

    def fingerprint(self, data: bytes) -> bytes:
        """Return a digest that is equal for equal data, and reveals nothing without the key."""
        return hmac.digest(self._naming, b"fingerprint:" + data, _SHA256)[:_NAME_BYTES]

    def _cipher(self) -> AESGCM:
        return AESGCM(_derived(self.secret, b"encryption"))

    def _belongs_to(self) -> bytes:
        return f"gamelake:personal:{self.game}:{self.pseudonym}".encode()


@dataclass(frozen=True, slots=True)
class VaultKeys:
    """The vault's keys: the index key for finding players, and the key-encryption keys by id."""

    current: str
    _index: bytes = field(repr=False)
    _keys: Mapping[str, bytes] = field(repr=False)

    @classmethod
    def read(cls, file: Path) -> "VaultKeys":
        """Read a file of keys, each 32 bytes in base64: `index`, `current` (an id) and `keys` (by id).

        Raises:
            SettingsError: the file can't be read or is invalid; the message quotes no content.
        """
        found = read_key_file(file)
        return cls(found.current, found.index, found.keys)

    @property
    def ids(self) -> frozenset[str]:
        """The ids of the key-encryption keys."""
        return frozenset(self._keys)

    def token(self, game: str, player: str) -> bytes:
        """Return the lookup token of a player in the vault: 32 bytes, which reveal nothing without the index key."""
        return hmac.digest(self._index, f"{game}\0{player}".encode(), _SHA256)

    def wrap(self, key: PlayerKey, token: bytes) -> bytes:
        """Encrypt a player's key with the current key-encryption key."""
        return _seal(AESGCM(self._keys[self.current]), key.secret, _wrapping(key.game, token))

    def unwrap(self, player: StoredPlayer) -> PlayerKey:
        """Undo `wrap`.

        Raises:
            UnknownKeyError: its key-encryption key is missing.
            TamperedError: the wrapped key is another player's, or was changed.
        """
        wrapping_key = self._keys.get(player.key_id)
        if wrapping_key is None:
            raise UnknownKeyError(f"the key-encryption key '{player.key_id}' is not in the file of keys")
        belongs_to = _wrapping(player.game, player.token)
        return PlayerKey(player.game, _open(AESGCM(wrapping_key), player.wrapped_key, belongs_to))

    def rewrapped(self, player: StoredPlayer) -> StoredPlayer:
        """Return the player's row with the same key, wrapped by the current key-encryption key.

        Raises:
            TamperedError: the row can't be unwrapped.
        """
        wrapped = self.wrap(self.unwrap(player), player.token)
        return msgspec.structs.replace(player, key_id=self.current, wrapped_key=wrapped)


def _wrapping(game: str, token: bytes) -> bytes:
    return b"gamelake:player-key:" + game.encode() + b":" + token


def _derived(secret: bytes, purpose: bytes) -> bytes:
    """A key for one purpose alone."""
    return HKDFExpand(SHA256(), KEY_BYTES, b"gamelake:" + purpose).derive(secret)


def _seal(cipher: AESGCM, data: bytes, belongs_to: bytes) -> bytes:
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + cipher.encrypt(nonce, data, belongs_to)


def _open(cipher: AESGCM, sealed: bytes, belongs_to: bytes) -> bytes:
    try:
        return cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], belongs_to)
    except (InvalidTag, ValueError):
        raise TamperedError("what was sealed is not what is there now, or not this player's") from None
