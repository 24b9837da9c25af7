"""Copies the vault into a new file while the gateway runs: ciphertext and wrapped keys, useless without the keys.

With --erasures-only, copies the erasures alone: do this often, and keep them for ever, as a restore needs them. Prints
one JSON document. Reads GAMELAKE_VAULT, GAMELAKE_VAULT_CREDENTIALS_FILE and GAMELAKE_VAULT_KEYS_FILE
(docs/settings.md). Older backups still have the erased players until they are deleted: do not keep them longer than
needed.
"""

from pathlib import Path

from gamelake.command import command_parser, print_result
from gamelake.model.logs import event_logger
from gamelake.privacy.vault.backup import back_up, export_erasures
from gamelake.privacy.vault.opening import open_vault
from gamelake.privacy.vault.secrecy import VaultKeys
from gamelake.privacy.vault.settings import VaultSettings
from gamelake.program import run

log = event_logger(__name__)


def main() -> int:
    """Write the file, and print its counts."""
    parser = command_parser(__doc__)
    parser.add_argument("file", type=Path, help="the file to write")
    parser.add_argument("--erasures-only", action="store_true", help="copy the erasures only")
    arguments = parser.parse_args()
    settings = VaultSettings.from_env()
    keys, vault = VaultKeys.read(settings.keys_file), open_vault(settings.access)
    if arguments.erasures_only:
        contents = export_erasures(vault, keys, arguments.file)
    else:
        contents = back_up(vault, keys, arguments.file, lambda count: log.info("players_copied", players=count))
    vault.close()
    return print_result(contents)


if __name__ == "__main__":
    run(main)
