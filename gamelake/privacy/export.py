"""The export of a player's data: from the vault, and rows of a table."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from gamelake.privacy.vault.secrecy import VaultKeys
from gamelake.privacy.vault.vault import StoredPlayer, Vault
from gamelake.storage.delta_log import live_files
from gamelake.storage.player_rows import PlayerFilter, PlayerTable
from gamelake.storage.store import Store
from gamelake.storage.tables import open_table


def rows_of(store: Store, table: PlayerTable, pseudonym: str) -> Iterator[pa.Table]:
    """The rows of a player, a table for each file with some, with all columns and the partition columns as strings."""
    player_filter = PlayerFilter(frozenset([pseudonym]))
    for file in live_files(open_table(store.location, table.name)):
        content = store.get(f"{table.name}/{file.relative_path}")
        rows = pq.ParquetFile(pa.BufferReader(content or b"")).read()
        rows = rows.filter(player_filter.rows_in(rows[table.column]))
        if rows.num_rows:
            for column, value in file.partition.items():
                rows = rows.append_column(column, pa.repeat(pa.scalar(value, pa.string()), rows.num_rows))
            yield rows


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
