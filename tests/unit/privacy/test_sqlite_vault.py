"""The vault in an SQLite file."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gamelake.privacy.vault.sqlite_vault import SqliteVault
from gamelake.privacy.vault.vault import Vault, VaultUnavailableError
from tests.support.vault_behaviour import OpenVault, VaultBehaviour, rows


@pytest.fixture
def open_again(tmp_path: Path) -> Iterator[OpenVault]:
    """Opens the vault once more, as another process would."""
    opened: list[SqliteVault] = []

    def open_it() -> SqliteVault:
        opened.append(SqliteVault(tmp_path / "vault.db"))
        return opened[-1]

    yield open_it
    for each in opened:
        each.close()


@pytest.fixture
def lost_and_new(tmp_path: Path, vault: Vault, open_again: OpenVault) -> OpenVault:
    """Loses the vault, and opens what is there now."""

    def lose() -> Vault:
        vault.close()
        for file in tmp_path.glob("vault.db*"):
            file.unlink()
        return open_again()

    return lose


@pytest.fixture
def bytes_on_disk(tmp_path: Path) -> Callable[[], bytes]:
    """All that stands in the vault's files."""
    return lambda: b"".join(file.read_bytes() for file in sorted(tmp_path.glob("vault.db*")))


class TestSqliteVault(VaultBehaviour):
    """It does what every vault does."""


def test_a_vault_whose_file_is_no_database_says_so(tmp_path: Path) -> None:
    (tmp_path / "vault.db").write_bytes(b"no database, whatever it is" * 100)

    with pytest.raises(VaultUnavailableError, match=r"vault\.db"):
        SqliteVault(tmp_path / "vault.db")


def test_nothing_is_written_to_a_file_that_was_taken_away(vault: Vault, open_again: OpenVault, tmp_path: Path) -> None:
    (tmp_path / "vault.db").rename(tmp_path / "moved")

    with pytest.raises(VaultUnavailableError, match="is gone"):
        vault.add(rows(1))
    assert not (tmp_path / "vault.db").exists()
    open_again()
    with pytest.raises(VaultUnavailableError, match="is gone"):
        vault.add(rows(1))
    assert open_again().players_by_key() == {}

    (tmp_path / "moved").replace(tmp_path / "vault.db")
    assert len(vault.add(rows(1))) == 1
