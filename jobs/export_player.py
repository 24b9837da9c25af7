"""Exports a player's data as JSON lines: first the personal data in the vault, then, with --events, rows of tables.

These are the player's rows in the game's silver table, then those in the quarantine with the rules that they broke.

A file that it writes is readable by its owner only. Settings come from GAMELAKE_* variables (docs/settings.md). Exits
with 2 if there is no such player.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import msgspec
from google.protobuf.message_factory import GetMessageClass

from gamelake.command import command_parser
from gamelake.delta.listing import has_log
from gamelake.model.errors import SettingsError
from gamelake.model.naming import QUARANTINE, game_table
from gamelake.objects.store import Store
from gamelake.privacy.export import personal_data
from gamelake.privacy.player_directory import IdentifiedPlayer, PlayerDirectory, UnknownPlayerError
from gamelake.privacy.settings import PlayerDataSettings
from gamelake.privacy.vault.opening import open_vault
from gamelake.privacy.vault.secrecy import VaultKeys
from gamelake.program import OK, run
from gamelake.scans.far_times import python_values
from gamelake.scans.player_rows import PlayerTable, rows_of
from gamelake.schemas.event_schemas import newest_submitted


def main() -> int:
    """Write the data of one player."""
    arguments = _arguments()
    settings = PlayerDataSettings.from_env()
    keys = VaultKeys.read(settings.vault.keys_file)
    with ExitStack() as stack:
        vault = open_vault(settings.vault.access)
        stack.callback(vault.close)
        player = _find(arguments, PlayerDirectory(vault, keys))
        if player.stored is None:
            raise UnknownPlayerError(f"the player of {player.game} was erased; there is nothing to export")
        event = GetMessageClass(newest_submitted(settings.games_file.parent).message)
        export = personal_data(vault, keys, player.stored, event)
        output = stack.enter_context(_opened(arguments.output)) if arguments.output else sys.stdout.buffer
        output.write(msgspec.json.encode(export) + b"\n")
        if arguments.events:
            for line in _event_lines(Store(settings.lakehouse.location), player):
                output.write(line)
        output.flush()
    return OK


def _arguments() -> argparse.Namespace:
    parser = command_parser(__doc__)
    player = parser.add_mutually_exclusive_group(required=True)
    player.add_argument("--player", help="the game's own name for the player; - reads it from standard input")
    player.add_argument("--pseudonym", help="the player's pseudonym in the tables")
    parser.add_argument("--game", required=True, help="the game's name in contracts/games.yaml")
    parser.add_argument("--events", action="store_true", help="the player's rows in silver and the quarantine, too")
    parser.add_argument("--output", type=Path, metavar="FILE", help="a new file; default: standard output")
    return parser.parse_args()


def _find(arguments: argparse.Namespace, players: PlayerDirectory) -> IdentifiedPlayer:
    if arguments.pseudonym:
        return players.by_pseudonym(arguments.game, arguments.pseudonym)
    name = sys.stdin.readline().rstrip("\n") if arguments.player == "-" else arguments.player
    return players.by_name(arguments.game, name)


def _opened(file: Path) -> BinaryIO:
    try:
        return os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
    except OSError as error:
        raise SettingsError(f"--output is '{file}', which can't be created: {error.strerror}") from error


def _event_lines(store: Store, player: IdentifiedPlayer) -> Iterator[bytes]:
    tables = [PlayerTable(name, "gamer_id") for name in (game_table(player.game), QUARANTINE)]
    for table in (each for each in tables if has_log(store, each.name)):
        for found in rows_of(store, table, player.pseudonym):
            # The quarantine has the record besides its row, which is the same in the form that Kafka has.
            rows = found.drop_columns(["value"]) if table.name == QUARANTINE else found
            values = zip(*map(python_values, rows.columns), strict=True)
            yield from (msgspec.json.encode(dict(zip(rows.column_names, row, strict=True))) + b"\n" for row in values)


if __name__ == "__main__":
    run(main)
