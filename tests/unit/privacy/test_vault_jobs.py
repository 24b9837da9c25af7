"""The jobs on the vault: what they print, and what they refuse."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gamelake.model.errors import BackupError, SettingsError
from gamelake.objects.store import Location, Store
from gamelake.privacy.erasure_records import ErasureRecords, ErasureRequest, Reach
from gamelake.privacy.vault.secrecy import VaultKeys
from gamelake.privacy.vault.sqlite_vault import SqliteVault
from jobs import backup_vault, restore_vault, rotate_vault_keys, vault_keys
from tests.support.vault_behaviour import GAME, a_player

Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a job's main function with arguments. Return what it prints."""
    monkeypatch.setenv("GAMELAKE_VAULT", str(tmp_path / "vault.db"))
    monkeypatch.setenv("GAMELAKE_VAULT_KEYS_FILE", str(tmp_path / "vault-keys.yaml"))
    monkeypatch.setenv("GAMELAKE_LAKEHOUSE", f"file://{tmp_path}/lakehouse")

    def run_it(main: Callable[[], int], *arguments: str) -> str:
        monkeypatch.setattr("sys.argv", ["job", *arguments])
        assert main() == 0
        return capsys.readouterr().out

    return run_it


def test_a_key_is_created_and_replaced_and_the_old_one_is_removed_when_unused(
    run: Run, vault: SqliteVault, tmp_path: Path
) -> None:
    first = run(vault_keys.main, "make").strip()
    keys = VaultKeys.read(tmp_path / "vault-keys.yaml")
    player, key = a_player(keys)
    vault.add([player])

    with pytest.MonkeyPatch.context() as later:
        later.setattr("gamelake.privacy.vault.key_file._new_id", lambda: "20300101T000000Z")
        second = run(vault_keys.main, "add").strip()
    with pytest.raises(SettingsError, match="wraps the keys of 1 players"):
        run(vault_keys.main, "remove", first)
    assert json.loads(run(rotate_vault_keys.main, "--dry-run"))["rotation"]["wrapped_by"] == {first: 1}
    rotated = json.loads(run(rotate_vault_keys.main))
    run(vault_keys.main, "remove", first)

    assert rotated["rotation"] == {"current": second, "rewrapped": 1, "unreadable": [], "wrapped_by": {second: 1}}
    assert rotated["no_longer_needed"] == [first]
    row = vault.find([player.token])[player.token]
    assert VaultKeys.read(tmp_path / "vault-keys.yaml").unwrap(row).pseudonym == key.pseudonym
    with pytest.raises(SettingsError, match="current"):
        run(vault_keys.main, "remove", second)


def test_a_restore_leaves_out_whom_the_lakehouse_or_a_list_says_were_erased(
    run: Run, vault: SqliteVault, tmp_path: Path
) -> None:
    run(vault_keys.main, "make")
    keys = VaultKeys.read(tmp_path / "vault-keys.yaml")
    players = [a_player(keys, name)[0] for name in ("stays", "of-the-lakehouse", "of-the-list")]
    vault.add(players)
    run(backup_vault.main, str(tmp_path / "backup"))
    request = ErasureRequest.new("support", GAME, (players[1].pseudonym,), Reach.VAULT)
    ErasureRecords(Store(Location(uri=f"file://{tmp_path}/lakehouse", options={}))).begin(request)
    vault.forget(players[2].token, "support")
    run(backup_vault.main, "--erasures-only", str(tmp_path / "erasures"))
    vault.close()
    for file in tmp_path.glob("vault.db*"):
        file.unlink()
    arguments = (str(tmp_path / "backup"), "--erasures", str(tmp_path / "erasures"))

    looked = json.loads(run(restore_vault.main, *arguments, "--dry-run"))
    assert looked == {
        "backup": {"kind": "foot", "players": 3, "data": 0, "erasures": 0},
        "erasures": 2,
        "restored": None,
    }
    assert not (tmp_path / "vault.db").exists()
    restored = json.loads(run(restore_vault.main, *arguments))["restored"]

    assert restored == {"restored": 1, "skipped": 2, "unreadable": 0, "erased_again": 0}
    again = SqliteVault(tmp_path / "vault.db")
    assert dict(again.find([each.token for each in players])) == {players[0].token: players[0]}
    assert len(again.erasures_after(0)) == 2
    again.close()


def test_nothing_is_restored_when_one_of_the_files_is_not_whole(run: Run, vault: SqliteVault, tmp_path: Path) -> None:
    run(vault_keys.main, "make")
    vault.add([a_player(VaultKeys.read(tmp_path / "vault-keys.yaml"))[0]])
    run(backup_vault.main, str(tmp_path / "backup"))
    (tmp_path / "erasures").write_bytes((tmp_path / "backup").read_bytes()[:-20])

    with pytest.raises(BackupError):
        run(restore_vault.main, str(tmp_path / "backup"), "--erasures", str(tmp_path / "erasures"))
