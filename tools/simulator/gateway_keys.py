"""The keys with which the games' SDKs sign, from a file of the form that the gateway reads its own from."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from gamelake.errors import SettingsError
from services.sdk import Credentials


class _Key(msgspec.Struct, frozen=True):
    id: str
    game: str
    secrets: tuple[str, ...]


class _KeyFile(msgspec.Struct, frozen=True):
    keys: tuple[_Key, ...]


def read_credentials(file: Path) -> Mapping[str, Credentials]:
    """Give one key for each game, by the game's name in the contract.

    Raises:
        SettingsError: the file can't be read or is not a list of keys; it says nothing of what the file holds.
    """
    try:
        keys = msgspec.yaml.decode(file.read_bytes(), type=_KeyFile).keys
    except OSError as error:
        raise SettingsError(f"the keys file {file} can't be read") from error
    except (msgspec.DecodeError, ValueError):
        raise SettingsError(f"the keys file {file} is not a list of keys") from None
    return {key.game: Credentials(key.id, key.secrets[0]) for key in keys if key.secrets}
