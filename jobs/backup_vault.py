"""Copies the vault into a new file while the gateway goes on: ciphertext and wrapped keys, of no use without keys.

With --erasures-only, the erasures alone: do that often, and keep it for ever; a restore wants it. Prints one JSON
document. Reads GAMELAKE_VAULT, GAMELAKE_VAULT_CREDENTIALS_FILE and GAMELAKE_VAULT_KEYS_FILE (docs/settings.md). A
forgotten player stays in older backups, unread, until they are deleted: do not keep them for longer than is needed.
"""

import argparse
import logging
from pathlib import Path

import msgspec

from gamelake.privacy.settings import VaultSettings
from gamelake.privacy.vault.backup import back_up, export_erasures
from gamelake.privacy.vault.opening import open_vault
from gamelake.privacy.vault.secrecy import VaultKeys
from gamelake.program import OK, run

log = logging.getLogger(__name__)


def main() -> int:
    """Write the file and say what is in it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="the file to make")
    parser.add_argument("--erasures-only", action="store_true", help="who was forgotten, and nothing else")
    arguments = parser.parse_args()
    settings = VaultSettings.from_env()
    keys, vault = VaultKeys.read(settings.keys_file), open_vault(settings.access)
    if arguments.erasures_only:
        contents = export_erasures(vault, keys, arguments.file)
    else:
        contents = back_up(vault, keys, arguments.file, lambda count: log.info("%d players were copied", count))
    vault.close()
    print(msgspec.json.format(msgspec.json.encode(contents)).decode())
    return OK


if __name__ == "__main__":
    run(main)
