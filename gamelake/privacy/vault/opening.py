"""Opens the vault: SQLite or PostgreSQL."""

from gamelake.privacy.vault.access import VaultAccess
from gamelake.privacy.vault.postgres_vault import PostgresVault
from gamelake.privacy.vault.sqlite_vault import SqliteVault
from gamelake.privacy.vault.vault import Vault


def open_vault(access: VaultAccess) -> Vault:
    """Open the vault; it is thread-safe.

    Raises:
        VaultUnavailableError: the file can't be opened. A server is contacted at the first use.
    """
    if access.file is None:
        return PostgresVault(access)
    return SqliteVault(access.file)
