"""The vault and its keys: what is kept, who can read it, and that what was forgotten is gone."""

import os
from pathlib import Path

import pytest

from gamelake.errors import SettingsError
from services.ingest.personal.secrecy import PlayerKey, TamperedError, VaultKeys
from services.ingest.personal.sqlite_vault import SqliteVault
from services.ingest.personal.vault import SealedData, StoredPlayer, VaultUnavailableError
from tests.unit.ingest.vault_keys import key_file

GAME = "archery_duel"


def a_player(keys: VaultKeys, name: str = "player-1") -> tuple[StoredPlayer, PlayerKey]:
    key, token = PlayerKey.new(GAME), keys.token(GAME, name)
    stored = StoredPlayer(
        token=token, game=GAME, pseudonym=key.pseudonym, key_id=keys.current, wrapped_key=keys.wrap(key, token)
    )
    return stored, key


def sealed(key: PlayerKey, data: bytes) -> SealedData:
    return SealedData(pseudonym=key.pseudonym, fingerprint=key.fingerprint(data), sealed=key.seal(data))


def test_a_players_key_comes_back_from_the_vault(keys: VaultKeys, vault: SqliteVault) -> None:
    stored, key = a_player(keys)
    vault.add([stored])

    found = vault.find([stored.token, b"nobody"])

    assert list(found) == [stored.token]
    row = found[stored.token]
    again = keys.unwrap(row.game, row.wrapped_key, row.key_id, row.token)
    assert again.pseudonym == key.pseudonym == row.pseudonym
    assert again.open(key.seal(b"mail@example.org")) == b"mail@example.org"


def test_who_is_added_first_stays(keys: VaultKeys, vault: SqliteVault) -> None:
    first, _ = a_player(keys)
    second, _ = a_player(keys)

    assert vault.add([first]) == {first.token: first}
    assert vault.add([second]) == {first.token: first}


def test_thousands_of_players_are_found_at_once(keys: VaultKeys, vault: SqliteVault) -> None:
    players = [
        StoredPlayer(token=os.urandom(32), game=GAME, pseudonym=os.urandom(16).hex(), key_id="first", wrapped_key=b"k")
        for _ in range(1234)
    ]
    vault.add(players)

    assert len(vault.find([each.token for each in players])) == 1234


def test_the_same_data_is_kept_once(keys: VaultKeys, vault: SqliteVault) -> None:
    stored, key = a_player(keys)
    vault.add([stored])

    vault.keep([sealed(key, b"mail"), sealed(key, b"mail"), sealed(key, b"device")])
    vault.keep([sealed(key, b"mail")])

    assert sorted(key.open(each) for each in vault.data_of(key.pseudonym)) == [b"device", b"mail"]


def test_a_forgotten_player_leaves_an_erasure_and_nothing_else(
    keys: VaultKeys, vault: SqliteVault, tmp_path: Path
) -> None:
    stored, key = a_player(keys)
    data = sealed(key, b"mail@example.org")
    vault.add([stored])
    vault.keep([data])

    erasure = vault.forget(stored.token)

    assert erasure is not None
    assert erasure.pseudonym == key.pseudonym
    assert vault.find([stored.token]) == {}
    assert vault.data_of(key.pseudonym) == []
    assert vault.erasures_after(0) == [erasure]
    assert vault.erasures_after(erasure.number) == []
    left = b"".join(file.read_bytes() for file in tmp_path.glob("vault.db*"))
    for gone in (stored.token, stored.wrapped_key, data.sealed, data.fingerprint):
        assert gone not in left


def test_nobody_is_forgotten_twice(keys: VaultKeys, vault: SqliteVault) -> None:
    stored, _ = a_player(keys)
    vault.add([stored])
    vault.forget(stored.token)

    assert vault.forget(stored.token) is None
    assert len(vault.erasures_after(0)) == 1


def test_data_that_comes_after_the_erasure_is_dropped(keys: VaultKeys, vault: SqliteVault) -> None:
    stored, key = a_player(keys)
    vault.add([stored])
    vault.forget(stored.token)

    vault.keep([sealed(key, b"late")])

    assert vault.data_of(key.pseudonym) == []


def test_a_player_who_comes_back_is_another_one(keys: VaultKeys, vault: SqliteVault) -> None:
    stored, key = a_player(keys)
    vault.add([stored])
    vault.forget(stored.token)
    again, new_key = a_player(keys)

    assert vault.add([again]) == {again.token: again}
    assert new_key.pseudonym != key.pseudonym


def test_a_vault_that_is_opened_again_has_what_it_had(keys: VaultKeys, vault: SqliteVault, tmp_path: Path) -> None:
    stored, _ = a_player(keys)
    vault.add([stored])

    again = SqliteVault(tmp_path / "vault.db")

    assert again.find([stored.token]) == {stored.token: stored}
    again.close()


def test_the_key_encryption_key_can_be_replaced(keys: VaultKeys, vault: SqliteVault, tmp_path: Path) -> None:
    stored, key = a_player(keys)
    vault.add([stored])
    newer = VaultKeys.read(key_file(tmp_path, current="second"))

    for old in vault.wrapped_otherwise("second", 10):
        unwrapped = newer.unwrap(old.game, old.wrapped_key, old.key_id, old.token)
        vault.rewrap(
            [
                StoredPlayer(
                    token=old.token,
                    game=old.game,
                    pseudonym=old.pseudonym,
                    key_id="second",
                    wrapped_key=newer.wrap(unwrapped, old.token),
                )
            ]
        )

    row = vault.find([stored.token])[stored.token]
    assert row.key_id == "second"
    assert newer.unwrap(row.game, row.wrapped_key, row.key_id, row.token).pseudonym == key.pseudonym
    assert vault.wrapped_otherwise("second", 10) == []


def test_a_vault_whose_file_is_no_database_says_so(tmp_path: Path) -> None:
    (tmp_path / "vault.db").write_bytes(b"no database, whatever it is" * 100)

    with pytest.raises(VaultUnavailableError, match=r"vault\.db"):
        SqliteVault(tmp_path / "vault.db")


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
        with pytest.raises(TamperedError):
            keys.unwrap(game, stored.wrapped_key, key_id, token)


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
