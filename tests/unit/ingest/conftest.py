"""A vault of each test's own, and the keys to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from services.ingest.personal.secrecy import VaultKeys
from services.ingest.personal.sqlite_vault import SqliteVault
from tests.unit.ingest.vault_keys import key_file


@pytest.fixture
def keys(tmp_path: Path) -> VaultKeys:
    """The vault's own keys."""
    return VaultKeys.read(key_file(tmp_path))


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[SqliteVault]:
    """An empty vault, in the file `vault.db` of the test's folder."""
    opened = SqliteVault(tmp_path / "vault.db")
    yield opened
    opened.close()
