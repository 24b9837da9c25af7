"""Wraps all players' keys with the vault's current key-encryption key, while the gateway runs.

Add a new key to the file first: `jobs/vault_keys.py add`. Prints one JSON document. Reads GAMELAKE_VAULT,
GAMELAKE_VAULT_CREDENTIALS_FILE and GAMELAKE_VAULT_KEYS_FILE (docs/settings.md). Exits with 0 if only the current key is
needed now, 1 if some players can't be decrypted, 4 if the vault was unavailable: then run it again.
"""

import msgspec

from gamelake.command import command_parser, print_result
from gamelake.model.logs import event_logger
from gamelake.privacy.vault.opening import open_vault
from gamelake.privacy.vault.rotation import Rotation, rewrap_all
from gamelake.privacy.vault.secrecy import VaultKeys
from gamelake.privacy.vault.settings import VaultSettings
from gamelake.program import FAILED, OK, run

log = event_logger(__name__)


class _Result(msgspec.Struct, frozen=True, kw_only=True):
    """The printed result; `no_longer_needed` are keys that only older backups may need."""

    rotation: Rotation
    no_longer_needed: tuple[str, ...]


def main() -> int:
    """Rewrap, or print the dry run."""
    parser = command_parser(__doc__)
    parser.add_argument(
        "--dry-run", action="store_true", help="print how many players each key wraps, and change nothing"
    )
    arguments = parser.parse_args()
    settings = VaultSettings.from_env()
    keys, vault = VaultKeys.read(settings.keys_file), open_vault(settings.access)
    if arguments.dry_run:
        by_key = vault.players_by_key()
        rotation = Rotation(current=keys.current, rewrapped=0, unreadable=(), wrapped_by=by_key)
    else:
        rotation = rewrap_all(vault, keys, lambda count: log.info("player_keys_rewrapped", players=count))
    vault.close()
    unneeded = tuple(sorted(set(keys.ids) - set(rotation.wrapped_by) - {keys.current}))
    print_result(_Result(rotation=rotation, no_longer_needed=unneeded))
    return OK if rotation.is_complete or arguments.dry_run else FAILED


if __name__ == "__main__":
    run(main)
