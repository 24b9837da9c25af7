"""The vault's keys: what can be read with which key."""

from pathlib import Path

import msgspec
import pytest

from gamelake.model.errors import SettingsError
from gamelake.privacy.vault.secrecy import PlayerKey, TamperedError, VaultKeys
from tests.support.vault_behaviour import GAME, a_player
from tests.support.vault_keys import key_file


def test_what_one_player_sealed_no_other_opens(keys: VaultKeys) -> None:
    _, mine = a_player(keys)
    _, other = a_player(keys, "player-2")

    with pytest.raises(TamperedError):
        other.open(mine.seal(b"mail"))


def test_a_changed_byte_is_seen(keys: VaultKeys) -> None:
    _, key = a_player(keys)
    data = bytearray(key.seal(b"mail"))
    data[-1] ^= 1

    with pytest.raises(TamperedError):
        key.open(bytes(data))


def test_a_wrapped_key_is_bound_to_its_player(keys: VaultKeys) -> None:
    stored, _ = a_player(keys)

    for token, game, key_id in (
        (keys.token(GAME, "player-2"), GAME, "first"),
        (stored.token, "bingo_harbor", "first"),
        (stored.token, GAME, "second"),
        (stored.token, GAME, "third"),
    ):
        moved = msgspec.structs.replace(stored, token=token, game=game, key_id=key_id)
        with pytest.raises(TamperedError):
            keys.unwrap(moved)


def test_the_same_player_of_two_games_is_two(keys: VaultKeys) -> None:
    assert keys.token("archery_duel", "p") != keys.token("bingo_harbor", "p")
    assert keys.token("a", "b") == keys.token("a", "b")


def test_neither_names_nor_data_stand_in_what_a_key_says_of_itself(keys: VaultKeys) -> None:
    key = PlayerKey(GAME, b"s" * 32)

    assert "sss" not in repr(key)
    assert "111" not in repr(keys)


@pytest.mark.parametrize("text", ["", "index: short", "current: x\nkeys: {}", "[", "index: 5"])
def test_a_bad_file_of_keys_is_refused_without_a_word_of_what_it_holds(tmp_path: Path, text: str) -> None:
    file = tmp_path / "keys.yaml"
    file.write_text(text)

    with pytest.raises(SettingsError, match=r"keys\.yaml"):
        VaultKeys.read(file)


def test_the_current_key_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="none of its keys"):
        VaultKeys.read(key_file(tmp_path, current="third"))
