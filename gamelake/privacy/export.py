"""The export of a player's personal data, which the vault has."""

from collections.abc import Mapping
from typing import Any

import msgspec
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from gamelake.privacy.vault.secrecy import VaultKeys
from gamelake.privacy.vault.vault import StoredPlayer, Vault


class Export(msgspec.Struct, frozen=True, kw_only=True):
    """A player's personal data: each item is the personal part of an event, identical ones once."""

    game: str
    pseudonym: str
    data: tuple[Mapping[str, Any], ...]


def personal_data(vault: Vault, keys: VaultKeys, player: StoredPlayer, event: type[Message]) -> Export:
    """Decrypt what the vault has of a player; `event` is the message class of submitted events.

    Raises:
        VaultUnavailableError: the vault is unavailable.
        TamperedError: a ciphertext is not what was written.
    """
    key = keys.unwrap(player)
    pieces = [event.FromString(key.open(sealed)) for sealed in vault.data_of(player.pseudonym)]
    data = tuple(MessageToDict(piece, preserving_proto_field_name=True) for piece in pieces)
    return Export(game=player.game, pseudonym=player.pseudonym, data=data)
