"""Signed files with all experiments of one game, for clients that assign players without a server.

A file is a JSON object with three texts: `payload` (a JSON document), `key` (the id of the signing key) and `signature`
(base64). The signature covers `CONTEXT`, a zero byte and the UTF-8 of the payload. Source: RFC 8032 (Ed25519).
"""

import base64
import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gamelake.contract.experiments import ExperimentSpec, in_buckets
from gamelake.contract.time_zones import DEFAULT_ZONE, TimeZone
from gamelake.model.errors import SettingsError

# Part of the signed text, so that a signature of another kind of file is invalid here.
CONTEXT = b"gamelake-experiments-1"
_SEED_BYTES = 32
_OWNER_ONLY = 0o600
_Seed = Annotated[str, msgspec.Meta(min_length=44, max_length=44)]


class _KeyFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    private: _Seed


class _Experiment(msgspec.Struct, frozen=True):
    name: str
    salt: str
    enrolled: int
    variants: list[tuple[str, int]]
    conditions: dict[str, tuple[str, ...]]
    starts_at: int
    ends_at: int


class _Payload(msgspec.Struct, frozen=True):
    game: str
    published_at: int
    expires_at: int
    experiments: list[_Experiment]


class _File(msgspec.Struct, frozen=True):
    payload: str
    key: str
    signature: str


@dataclass(frozen=True, slots=True)
class SigningKey:
    """The key that signs files; `repr` leaves it out."""

    private: Ed25519PrivateKey = field(repr=False)

    @classmethod
    def of(cls, seed: bytes) -> "SigningKey":
        """Return the key of a seed of 32 bytes."""
        return cls(Ed25519PrivateKey.from_private_bytes(seed))

    @property
    def public(self) -> str:
        """The public key in base64, for clients."""
        return base64.b64encode(self.private.public_key().public_bytes_raw()).decode()

    @property
    def id(self) -> str:
        """The key's id: the first 16 hexadecimal digits of the public key's SHA-256."""
        return hashlib.sha256(self.private.public_key().public_bytes_raw()).hexdigest()[:16]

    def sign(self, payload: str) -> str:
        """Return the signature of a payload in base64."""
        return base64.b64encode(self.private.sign(CONTEXT + b"\0" + payload.encode())).decode()


def create_key(file: Path) -> SigningKey:
    """Write a new key to a file that only its owner can read.

    Raises:
        SettingsError: the file exists, or can't be written.
    """
    seed = os.urandom(_SEED_BYTES)
    content = msgspec.json.encode(_KeyFile(base64.b64encode(seed).decode()))
    try:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY), "wb") as opened:
            opened.write(content + b"\n")
    except FileExistsError:
        raise SettingsError(f"'{file}' exists; a key that clients know must not be replaced") from None
    except OSError as error:
        raise SettingsError(f"'{file}' can't be written: {error.strerror}") from None
    return SigningKey.of(seed)


def read_key(file: Path) -> SigningKey:
    """Read a key that `create_key` has written.

    Raises:
        SettingsError: the file can't be read, or is not such a key; the message never quotes the file.
    """
    try:
        return SigningKey.of(base64.b64decode(msgspec.json.decode(file.read_bytes(), type=_KeyFile).private))
    except OSError as error:
        raise SettingsError(f"the signing key '{file}' can't be read: {error.strerror}") from None
    except (msgspec.DecodeError, ValueError):
        raise SettingsError(f"'{file}' is not a signing key; `gamelake experiments new-key` writes one") from None


@dataclass(frozen=True, slots=True)
class Validity:
    """The period in which clients accept a file."""

    published_at: datetime
    duration: timedelta


def publish(
    experiments: Iterable[ExperimentSpec], game: str, key: SigningKey, validity: Validity, zone: str = DEFAULT_ZONE
) -> bytes:
    """Return a signed file with a game's experiments, except those that are over.

    Args:
        experiments: the experiments of all games.
        game: the game's name.
        key: signs the file.
        validity: when the file is published, and for how long clients accept it.
        zone: the game's time zone, which decides when an experiment's days begin and end.
    """
    published, days = validity.published_at.timestamp(), TimeZone(zone)
    mine = [_published(each, days) for each in experiments if each.game == game]
    payload = msgspec.json.encode(
        _Payload(
            game=game,
            published_at=int(published),
            expires_at=int(published + validity.duration.total_seconds()),
            experiments=[each for each in mine if each.ends_at > published],
        )
    ).decode()
    return msgspec.json.encode(_File(payload, key.id, key.sign(payload))) + b"\n"


def _published(spec: ExperimentSpec, days: TimeZone) -> _Experiment:
    allowed = spec.eligibility
    conditions = {"platform": allowed.platforms, "country": allowed.countries, "app_version": allowed.app_versions}
    return _Experiment(
        name=spec.name,
        salt=spec.seed,
        enrolled=in_buckets(allowed.share),
        variants=[(each.name, in_buckets(each.share)) for each in spec.variants],
        conditions={name: values for name, values in conditions.items() if values},
        starts_at=days.begins(spec.start),
        ends_at=days.ends(spec.last_day),
    )


def now() -> datetime:
    """Return the current time, in UTC."""
    return datetime.now(UTC)
