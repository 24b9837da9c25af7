"""Opens the vault, wherever it is."""

from gamelake.privacy.vault.access import VaultAccess
from gamelake.privacy.vault.postgres_vault import PostgresVault
from gamelake.privacy.vault.sqlite_vault import SqliteVault
from gamelake.privacy.vault.vault import Vault


def open_vault(access: VaultAccess) -> Vault:
    """The vault, ready for any number of threads.

    Raises:
        VaultUnavailableError: the file can't be opened. A server is not asked yet.
    """
    if access.file is None:
        return PostgresVault(access)
    return SqliteVault(access.file)
