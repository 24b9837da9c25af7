"""Manages the file of the vault's keys: creates it, adds a key-encryption key, or removes an unused one.

`add` makes the new key current; then run `jobs/rotate_vault_keys.py`. The file is GAMELAKE_VAULT_KEYS_FILE
(docs/settings.md). No key is ever printed. Keep a copy of the file apart from the vault and its backups: without it
they can't be read.
"""

from gamelake.command import command_parser
from gamelake.privacy.vault.key_file import add_key, make_key_file, remove_key
from gamelake.privacy.vault.opening import open_vault
from gamelake.privacy.vault.settings import VaultKeysSettings, VaultSettings
from gamelake.program import OK, run


def main() -> int:
    """Run one of the commands."""
    parser = command_parser(__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("make", help="create the file; it must not exist")
    commands.add_parser("add", help="add a key-encryption key, which wraps keys from now on")
    remove = commands.add_parser("remove", help="remove a key that wraps no player's key; older backups may need it")
    remove.add_argument("key", help="its id")
    arguments = parser.parse_args()
    file = VaultKeysSettings.from_env().keys_file
    if arguments.command == "make":
        print(make_key_file(file))
    elif arguments.command == "add":
        print(add_key(file))
    else:
        remove_key(file, arguments.key, _players_that_need)
    return OK


def _players_that_need(key_id: str) -> int:
    vault = open_vault(VaultSettings.from_env().access)
    players = vault.players_by_key().get(key_id, 0)
    vault.close()
    return players


if __name__ == "__main__":
    run(main)
