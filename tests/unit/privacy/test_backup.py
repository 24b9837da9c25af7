"""Backups of the vault: whole or refused, useless without the keys, and of one vault only."""

import stat
from pathlib import Path

import pytest

from gamelake.model.errors import BackupError
from gamelake.privacy.vault.backup import RestoredPlayers, back_up, check_backup, restore
from gamelake.privacy.vault.key_file import make_key_file, remove_key
from gamelake.privacy.vault.secrecy import VaultKeys
from gamelake.privacy.vault.sqlite_vault import SqliteVault
from tests.support.vault_behaviour import a_player, sealed
from tests.support.vault_keys import key_file


@pytest.fixture
def backup(tmp_path: Path, vault: SqliteVault, keys: VaultKeys) -> Path:
    made = [a_player(keys, f"player-{number}") for number in range(50)]
    vault.take([row for row, _ in made], [sealed(key, b"mail@example.org") for _, key in made])
    file = tmp_path / "backup"
    back_up(vault, keys, file, print)
    return file


def test_a_backup_is_readable_by_its_owner_only_and_leaves_no_other_file(backup: Path) -> None:
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert sorted(path.name for path in backup.parent.glob(".*")) == []


def test_a_backup_is_never_written_over(backup: Path, vault: SqliteVault, keys: VaultKeys) -> None:
    before = backup.read_bytes()

    with pytest.raises(BackupError, match="exists already"):
        back_up(vault, keys, backup, print)

    assert backup.read_bytes() == before


@pytest.mark.parametrize("share", [0, 0.3, 0.9])
def test_half_a_backup_is_refused(backup: Path, keys: VaultKeys, share: float) -> None:
    content = backup.read_bytes()
    backup.write_bytes(content[: int(share * len(content))])

    with pytest.raises(BackupError):
        check_backup(backup, keys)


def test_a_backup_of_another_vaults_keys_is_refused(backup: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    make_key_file(tmp_path / "other" / "vault-keys.yaml")

    with pytest.raises(BackupError, match="another index key"):
        check_backup(backup, VaultKeys.read(tmp_path / "other" / "vault-keys.yaml"))


def test_players_whose_key_was_destroyed_come_back_unreadable_and_are_counted(backup: Path, tmp_path: Path) -> None:
    file = key_file(tmp_path, current="second")
    remove_key(file, "first", lambda _key: 0)
    new = SqliteVault(tmp_path / "new.db")

    restored = restore(new, VaultKeys.read(file), backup, print)

    assert restored == RestoredPlayers(restored=50, unreadable=50)
    new.close()
