"""The vault's own keys as a running program has them: a file, read again when it changes."""

from pathlib import Path

from gamelake.model.credentials import WatchedFile
from gamelake.model.errors import SettingsError
from gamelake.privacy.vault.secrecy import VaultKeys


class VaultKeyring:
    """The keys that are good now, for any number of threads. A file that was changed for the worse leaves them."""

    def __init__(self, file: Path) -> None:
        self._index: bytes | None = None
        self._file = WatchedFile(file, self._read, "the vault's keys")

    @property
    def now(self) -> VaultKeys:
        """The keys as they were when the file was last looked at."""
        return self._file.now

    def refresh(self) -> None:
        """Look whether the file has changed, and take what it says now."""
        self._file.refresh()

    def _read(self, file: Path) -> VaultKeys:
        keys = VaultKeys.read(file)
        index = _index_of(keys)
        if self._index not in (None, index):
            raise SettingsError(f"the index key in '{file}' is another one, and no player would be found by it")
        self._index = index
        return keys


def _index_of(keys: VaultKeys) -> bytes:
    """What the index key makes of nobody, by which two of them are told apart."""
    return keys.token("", "")
