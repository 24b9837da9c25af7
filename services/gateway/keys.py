"""The games' keys: a file that only the service reads, looked at again when it changes."""

from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec

from gamelake.contracts.games import GamesContract, SnakeName
from gamelake.errors import SettingsError
from gamelake.watched_file import WatchedFile

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
