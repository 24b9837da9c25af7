"""What the vault keeps of a person, opened, as the person may have it.

It takes no part in tables, so that the ingest service need not bear their libraries.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from gamelake.vault.secrecy import VaultKeys
from gamelake.vault.vault import StoredPlayer, Vault


class Export(msgspec.Struct, frozen=True, kw_only=True):
    """A person's data: each piece is the personal part of one event or of several that had the same."""

    game: str
    pseudonym: str
    data: tuple[Mapping[str, Any], ...]


def personal_data(vault: Vault, keys: VaultKeys, player: StoredPlayer, event: type[Message]) -> Export:
    """Open what the vault has of a player; `event` is the submitted event's class.

    Raises:
        VaultUnavailableError: the vault does not answer.
        TamperedError: something in it is not what was written.
    """
    key = keys.unwrap(player)
    pieces = [event.FromString(key.open(sealed)) for sealed in vault.data_of(player.pseudonym)]
    data = tuple(MessageToDict(piece, preserving_proto_field_name=True) for piece in pieces)
    return Export(game=player.game, pseudonym=player.pseudonym, data=data)
