"""Restores players into the vault from a backup; existing players stay, erased ones are not restored.

Erasures are read from the vault, the backup, the lakehouse's record of erasures and each file of --erasures. Prints one
JSON document. Reads GAMELAKE_VAULT, GAMELAKE_VAULT_CREDENTIALS_FILE, GAMELAKE_VAULT_KEYS_FILE and GAMELAKE_LAKEHOUSE
(docs/settings.md). Start the gateway afterwards; run it again after a failure. Exits with 1 if players were restored
whose key-encryption key is not in the file of keys.
"""

import argparse
from pathlib import Path

import msgspec

from gamelake.command import command_parser, print_result
from gamelake.model.logs import event_logger
from gamelake.objects.settings import LakehouseSettings
from gamelake.objects.store import Store
from gamelake.privacy.erasure_records import ErasureRecords
from gamelake.privacy.vault.backup import BackupContents, RestoredPlayers, check_backup, erasures_in, restore
from gamelake.privacy.vault.opening import open_vault
from gamelake.privacy.vault.secrecy import VaultKeys
from gamelake.privacy.vault.settings import VaultSettings
from gamelake.privacy.vault.vault import Erasure
from gamelake.program import FAILED, OK, run

log = event_logger(__name__)


class _Result(msgspec.Struct, frozen=True, kw_only=True):
    """The printed result; without `restored` nothing was changed."""

    backup: BackupContents
    erasures: int
    restored: RestoredPlayers | None = None


def main() -> int:
    """Check all files, then record the erasures, then restore the players."""
    arguments = _arguments()
    settings = VaultSettings.from_env()
    keys = VaultKeys.read(settings.keys_file)
    contents = check_backup(arguments.file, keys)
    erasures = _erasures_of_lakehouse(arguments)
    for file in (arguments.file, *arguments.erasures):
        check_backup(file, keys)
        erasures += erasures_in(file)
    result = _Result(backup=contents, erasures=len({each.pseudonym for each in erasures}))
    if not arguments.dry_run:
        vault = open_vault(settings.access)
        erased_again = vault.enforce(erasures)
        restored = restore(vault, keys, arguments.file, lambda count: log.info("players_read", players=count))
        vault.destroy_remains()
        vault.close()
        result = msgspec.structs.replace(result, restored=msgspec.structs.replace(restored, erased_again=erased_again))
    print_result(result)
    return FAILED if result.restored is not None and result.restored.unreadable else OK


def _arguments() -> argparse.Namespace:
    parser = command_parser(__doc__)
    parser.add_argument("file", type=Path, help="the backup")
    parser.add_argument(
        "--erasures", type=Path, action="append", default=[], metavar="FILE", help="exported erasures, or newer backups"
    )
    parser.add_argument(
        "--without-lakehouse", action="store_true", help="there is no lakehouse with a record of erasures"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="check the files, print their counts, and change nothing"
    )
    return parser.parse_args()


def _erasures_of_lakehouse(arguments: argparse.Namespace) -> list[Erasure]:
    if arguments.without_lakehouse:
        return []
    requests = ErasureRecords(Store(LakehouseSettings.from_env().location)).requests()
    return [
        Erasure(number=0, game=each.game, pseudonym=pseudonym, erased_at=each.requested_at, erased_by=each.requested_by)
        for each in requests
        for pseudonym in each.pseudonyms
    ]


if __name__ == "__main__":
    run(main)
