"""The file of the vault's keys: made once, changed at one stroke, and no key ever lost."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gamelake.model.errors import SettingsError
from gamelake.privacy.vault import key_file
from gamelake.privacy.vault.key_file import add_key, make_key_file, read_key_file, remove_key
from gamelake.privacy.vault.keyring import VaultKeyring
from tests.support import vault_keys


def no_uses(_key_id: str) -> int:
    return 0


def test_a_new_file_is_its_owners_alone(tmp_path: Path) -> None:
    file = tmp_path / "vault-keys.yaml"

    key_id = make_key_file(file)

    made = read_key_file(file)
    assert (made.current, list(made.keys)) == (key_id, [key_id])
    assert made.index != made.keys[key_id]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["vault-keys.yaml"]  # noqa: PTH208 # hidden ones too


def test_a_file_that_is_there_is_never_written_over(tmp_path: Path) -> None:
    file = vault_keys.key_file(tmp_path)
    before = file.read_bytes()

    with pytest.raises(SettingsError, match="exists already"):
        make_key_file(file)

    assert file.read_bytes() == before


def test_a_key_that_is_added_is_current_and_the_others_stay(tmp_path: Path) -> None:
    file = vault_keys.key_file(tmp_path)
    file.chmod(0o640)
    before = read_key_file(file)

    key_id = add_key(file)

    after = read_key_file(file)
    assert (after.current, after.index) == (key_id, before.index)
    assert {each: key for each, key in after.keys.items() if each != key_id} == before.keys
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_of_keys_that_are_added_at_once_none_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = vault_keys.key_file(tmp_path)
    ids = iter(f"key-{number}" for number in range(20))
    monkeypatch.setattr(key_file, "_new_id", lambda: next(ids))

    with ThreadPoolExecutor(8) as threads:
        added = list(threads.map(lambda _: add_key(file), range(20)))

    assert set(read_key_file(file).keys) == {"first", "second", *added}


def test_only_a_key_that_is_not_current_can_be_taken_out(tmp_path: Path) -> None:
    file = vault_keys.key_file(tmp_path)

    remove_key(file, "second", no_uses)

    assert list(read_key_file(file).keys) == ["first"]
    for key_id, problem in (("first", "current"), ("second", "no key")):
        with pytest.raises(SettingsError, match=problem):
            remove_key(file, key_id, no_uses)


def test_a_running_program_takes_a_key_that_was_added(tmp_path: Path) -> None:
    file = vault_keys.key_file(tmp_path)
    keyring = VaultKeyring(file)

    key_id = add_key(file)
    keyring.refresh()

    assert keyring.now.current == key_id


@pytest.mark.parametrize("text", ["", "index: x", None], ids=["empty", "broken", "another index key"])
def test_a_running_program_keeps_its_keys_when_the_file_goes_bad(tmp_path: Path, text: str | None) -> None:
    file = vault_keys.key_file(tmp_path)
    keyring = VaultKeyring(file)
    token = keyring.now.token("archery_duel", "p")

    file.unlink()
    keyring.refresh()
    if text is None:
        make_key_file(file)
    else:
        file.write_text(text)
    keyring.refresh()

    assert keyring.now.current == "first"
    assert keyring.now.token("archery_duel", "p") == token


def test_no_key_is_in_what_is_printed_of_the_file(tmp_path: Path) -> None:
    assert "1111" not in repr(read_key_file(vault_keys.key_file(tmp_path)))
