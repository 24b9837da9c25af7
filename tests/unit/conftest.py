"""Unit tests reach no network: opening a socket is an error."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_socket import disable_socket, enable_socket

from gamelake.delta.tables import DeltaTables
from gamelake.objects.store import Store
from gamelake.privacy.vault.secrecy import VaultKeys
from gamelake.privacy.vault.sqlite_vault import SqliteVault
from tests.support.player_tables import store_in
from tests.support.vault_keys import key_file


@pytest.fixture(autouse=True)
def _no_network() -> Iterator[None]:
    disable_socket(allow_unix_socket=True)
    yield
    enable_socket()


@pytest.fixture
def keys(tmp_path: Path) -> VaultKeys:
    return VaultKeys.read(key_file(tmp_path))


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[SqliteVault]:
    """An empty vault, in the file `vault.db` of the test's folder."""
    opened = SqliteVault(tmp_path / "vault.db")
    yield opened
    opened.close()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty lakehouse in the test's folder."""
    return store_in(tmp_path)


@pytest.fixture
def tables(store: Store) -> Iterator[DeltaTables]:
    """The tables of `store`, open during the test."""
    with DeltaTables(store.location) as opened:
        yield opened
