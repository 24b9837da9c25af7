"""The vault's keys in a running program: read again when the file changes."""

from pathlib import Path

from gamelake.model.credentials import WatchedFile
from gamelake.model.errors import SettingsError
from gamelake.privacy.vault.secrecy import VaultKeys


class VaultKeyring:
    """The current keys; thread-safe. An invalid change of the file leaves the former keys in use."""

    def __init__(self, file: Path) -> None:
        self._index: bytes | None = None
        self._file = WatchedFile(file, self._read, "the vault's keys")

    @property
    def now(self) -> VaultKeys:
        """The keys of the last refresh."""
        return self._file.now

    def refresh(self) -> None:
        """Read the file again if it has changed."""
        self._file.refresh()

    def _read(self, file: Path) -> VaultKeys:
        keys = VaultKeys.read(file)
        index = _index_of(keys)
        if self._index not in (None, index):
            raise SettingsError(f"the index key in '{file}' is another one, and no player would be found by it")
        self._index = index
        return keys


def _index_of(keys: VaultKeys) -> bytes:
    """A digest of the index key, to compare two of them."""
    return keys.token("", "")
