"""Gives a person their data as JSON lines: first what the vault keeps, then, with --events, each row of silver.

A file that it writes is readable by its owner alone. Settings come from GAMELAKE_* variables (docs/settings.md). Ends
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
from deltalake import DeltaTable
from google.protobuf.message_factory import GetMessageClass

from gamelake.model.errors import SettingsError
from gamelake.model.naming import game_table
from gamelake.privacy.export import personal_data, rows_of
from gamelake.privacy.player_directory import IdentifiedPlayer, PlayerDirectory, UnknownPlayerError
from gamelake.privacy.settings import PlayerDataSettings
from gamelake.privacy.vault.opening import open_vault
from gamelake.privacy.vault.secrecy import VaultKeys
from gamelake.program import OK, run
from gamelake.schemas.event_schemas import newest_submitted
from gamelake.storage.player_rows import PlayerTable
from gamelake.storage.store import Store


def main() -> int:
    """Write what is kept of one player."""
    arguments = _arguments()
    settings = PlayerDataSettings.from_env()
    keys = VaultKeys.read(settings.vault.keys_file)
    with ExitStack() as stack:
        vault = open_vault(settings.vault.access)
        stack.callback(vault.close)
        person = _sought(arguments, PlayerDirectory(vault, keys))
        if person.stored is None:
            raise UnknownPlayerError(f"the player of {person.game} was forgotten; there is nothing to hand out")
        event = GetMessageClass(newest_submitted(settings.games_file.parent).message)
        export = personal_data(vault, keys, person.stored, event)
        output = stack.enter_context(_opened(arguments.output)) if arguments.output else sys.stdout.buffer
        output.write(msgspec.json.encode(export) + b"\n")
        if arguments.events:
            for line in _event_lines(Store(settings.lakehouse.location), person):
                output.write(line)
        output.flush()
    return OK


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    who = parser.add_mutually_exclusive_group(required=True)
    who.add_argument("--player", help="the game's own name for the player; - reads it from the input")
    who.add_argument("--pseudonym", help="the player's name in the lake")
    parser.add_argument("--game", required=True, help="the game's name in contracts/games.yaml")
    parser.add_argument("--events", action="store_true", help="the player's rows in the game's silver table too")
    parser.add_argument("--output", type=Path, metavar="FILE", help="a new file; without it, the output")
    return parser.parse_args()


def _sought(arguments: argparse.Namespace, persons: PlayerDirectory) -> IdentifiedPlayer:
    if arguments.pseudonym:
        return persons.by_pseudonym(arguments.game, arguments.pseudonym)
    name = sys.stdin.readline().rstrip("\n") if arguments.player == "-" else arguments.player
    return persons.by_name(arguments.game, name)


def _opened(file: Path) -> BinaryIO:
    try:
        return os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
    except OSError as error:
        raise SettingsError(f"--output is '{file}', which can't be made anew: {error.strerror}") from error


def _event_lines(store: Store, person: IdentifiedPlayer) -> Iterator[bytes]:
    table = PlayerTable(game_table(person.game), "gamer_id")
    if DeltaTable.is_deltatable(store.location.child(table.name), dict(store.location.options)):
        for rows in rows_of(store, table, person.pseudonym):
            yield from (msgspec.json.encode(row) + b"\n" for row in rows.to_pylist())


if __name__ == "__main__":
    run(main)
