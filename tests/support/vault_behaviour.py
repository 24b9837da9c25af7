"""What every vault does, whatever database it is in; a class of tests for each of them takes this one over."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from gamelake.privacy.vault.backup import (
    BackupContents,
    RestoredPlayers,
    back_up,
    check_backup,
    erasures_in,
    export_erasures,
    restore,
)
from gamelake.privacy.vault.migrations import MOST_SEALED_BYTES
from gamelake.privacy.vault.rotation import Rotation, rewrap_all
from gamelake.privacy.vault.secrecy import PlayerKey, VaultKeys
from gamelake.privacy.vault.vault import (
    Erasure,
    KeptData,
    PlayerRecord,
    Rewrapping,
    SealedData,
    StoredPlayer,
    Vault,
    VaultRefusedError,
)
from tests.support.vault_keys import key_file

GAME = "archery_duel"

OpenVault = Callable[[], Vault]


def a_player(keys: VaultKeys, name: str = "player-1") -> tuple[StoredPlayer, PlayerKey]:
    """A new player's row, and the key in it."""
    key, token = PlayerKey.new(GAME), keys.token(GAME, name)
    stored = StoredPlayer(
        token=token, game=GAME, pseudonym=key.pseudonym, key_id=keys.current, wrapped_key=keys.wrap(key, token)
    )
    return stored, key


def sealed(key: PlayerKey, data: bytes) -> SealedData:
    """Data of a player, as the vault gets it."""
    return SealedData(pseudonym=key.pseudonym, fingerprint=key.fingerprint(data), sealed=key.seal(data))


def rows(count: int) -> list[StoredPlayer]:
    """Return `count` rows of players, made fast: their keys are noise."""
    return [
        StoredPlayer(
            token=os.urandom(32), game=GAME, pseudonym=os.urandom(16).hex(), key_id="first", wrapped_key=os.urandom(60)
        )
        for _ in range(count)
    ]


class VaultBehaviour:
    """Needs the fixtures `keys`, `vault`, which is empty, `open_again`, `lost_and_new` and `bytes_on_disk`."""

    def test_a_players_key_comes_back_from_the_vault(self, keys: VaultKeys, vault: Vault) -> None:
        stored, key = a_player(keys)
        vault.add([stored])

        found = vault.find([stored.token, b"unknown"])

        assert dict(found) == {stored.token: stored}
        assert vault.named(key.pseudonym) == stored
        again = keys.unwrap(found[stored.token])
        assert again.pseudonym == key.pseudonym
        assert again.open(key.seal(b"mail@example.org")) == b"mail@example.org"

    def test_the_player_that_is_added_first_stays(self, keys: VaultKeys, vault: Vault) -> None:
        first, _ = a_player(keys)
        second, _ = a_player(keys)

        assert vault.add([first]) == {first.token: first}
        assert vault.add([second]) == {first.token: first}

    def test_thousands_of_players_are_found_at_once(self, vault: Vault) -> None:
        players = rows(1234)
        vault.add(players)

        assert vault.find([each.token for each in players]) == {each.token: each for each in players}

    def test_the_same_data_is_kept_once(self, keys: VaultKeys, vault: Vault) -> None:
        stored, key = a_player(keys)
        vault.add([stored])

        vault.keep([sealed(key, b"mail"), sealed(key, b"mail"), sealed(key, b"device")])
        vault.keep([sealed(key, b"mail")])

        assert sorted(key.open(each) for each in vault.data_of(key.pseudonym)) == [b"device", b"mail"]

    def test_data_larger_than_any_event_may_have_is_refused_by_the_database(
        self, keys: VaultKeys, vault: Vault
    ) -> None:
        stored, key = a_player(keys)
        vault.add([stored])
        largest, larger = (
            msgspec.structs.replace(sealed(key, b""), sealed=bytes(MOST_SEALED_BYTES + n)) for n in (0, 1)
        )

        with pytest.raises(VaultRefusedError):
            vault.keep([larger])
        with pytest.raises(VaultRefusedError):
            vault.take([], [larger])
        with pytest.raises(VaultRefusedError):
            vault.restore(
                [
                    PlayerRecord(
                        player=stored,
                        data=(
                            KeptData(fingerprint=larger.fingerprint, sealed=larger.sealed, kept_at=datetime.now(UTC)),
                        ),
                    )
                ]
            )
        with pytest.raises(VaultRefusedError):
            vault.add([msgspec.structs.replace(a_player(keys, "player-2")[0], game="g" * 257)])

        assert vault.data_of(key.pseudonym) == []
        vault.keep([largest])
        assert vault.data_of(key.pseudonym) == [largest.sealed]

    def test_players_and_data_are_taken_together(self, keys: VaultKeys, vault: Vault) -> None:
        first, key = a_player(keys)
        second, other = a_player(keys, "player-2")
        vault.add([first])

        standing = vault.take([second], [sealed(key, b"mail"), sealed(other, b"device")])

        assert standing == {second.token: second}
        assert [key.open(each) for each in vault.data_of(key.pseudonym)] == [b"mail"]
        assert [other.open(each) for each in vault.data_of(other.pseudonym)] == [b"device"]

    def test_a_forgotten_player_leaves_an_erasure_and_nothing_else(
        self, keys: VaultKeys, vault: Vault, bytes_on_disk: Callable[[], bytes]
    ) -> None:
        stored, key = a_player(keys)
        vault.add([stored, *rows(100)])
        vault.keep([sealed(key, b"mail@example.org")])
        was_there = bytes_on_disk()

        erasure = vault.forget(stored.token, "support")

        assert erasure is not None
        assert (erasure.pseudonym, erasure.erased_by) == (key.pseudonym, "support")
        assert vault.find([stored.token]) == {}
        assert vault.named(key.pseudonym) is None
        assert vault.data_of(key.pseudonym) == []
        assert vault.erasures_after(0) == [erasure]
        assert vault.erasures_after(erasure.number) == []
        assert vault.last_erasure() == erasure.number
        assert vault.destroy_remains()
        left = bytes_on_disk()
        for gone in (stored.token, stored.wrapped_key):
            assert gone in was_there
            assert gone not in left
        assert b"mail@example.org" not in was_there + left

    def test_no_player_is_forgotten_twice(self, keys: VaultKeys, vault: Vault) -> None:
        stored, _ = a_player(keys)
        vault.add([stored])
        vault.forget(stored.token, "support")

        assert vault.forget(stored.token, "support") is None
        assert len(vault.erasures_after(0)) == 1

    def test_data_that_comes_after_the_erasure_is_dropped(self, keys: VaultKeys, vault: Vault) -> None:
        stored, key = a_player(keys)
        vault.add([stored])
        vault.forget(stored.token, "support")

        vault.keep([sealed(key, b"late")])

        assert vault.data_of(key.pseudonym) == []

    def test_a_player_that_comes_back_gets_another_pseudonym(self, keys: VaultKeys, vault: Vault) -> None:
        stored, key = a_player(keys)
        vault.add([stored])
        vault.forget(stored.token, "support")
        again, new_key = a_player(keys)

        assert vault.add([again]) == {again.token: again}
        assert new_key.pseudonym != key.pseudonym

    def test_a_vault_that_is_opened_again_has_what_it_had(
        self, keys: VaultKeys, vault: Vault, open_again: OpenVault
    ) -> None:
        stored, _ = a_player(keys)
        vault.add([stored])

        assert open_again().find([stored.token]) == {stored.token: stored}

    def test_processes_that_open_a_new_vault_at_once_all_get_it(self, vault: Vault, open_again: OpenVault) -> None:
        player = rows(1)[0]
        with ThreadPoolExecutor(8) as threads:
            standing = list(threads.map(lambda _: open_again().add([player]), range(8)))

        assert standing == [{player.token: player}] * 8
        assert vault.players_by_key() == {"first": 1}

    def test_two_writers_of_the_same_players_in_another_order_agree(self, vault: Vault, open_again: OpenVault) -> None:
        mine = rows(300)
        theirs = [msgspec.structs.replace(each, pseudonym=os.urandom(16).hex()) for each in reversed(mine)]
        other = open_again()
        with ThreadPoolExecutor(2) as threads:
            first, second = threads.map(lambda work: work(), (lambda: vault.add(mine), lambda: other.add(theirs)))

        assert first == second
        assert len(first) == 300

    def test_data_that_meets_an_erasure_is_dropped_or_erased(self, vault: Vault, open_again: OpenVault) -> None:
        other, stop = open_again(), threading.Event()
        players = rows(20)
        vault.add(players)
        data = [SealedData(pseudonym=each.pseudonym, fingerprint=os.urandom(16), sealed=b"s") for each in players]

        def keep_on_keeping() -> None:
            while not stop.is_set():
                other.keep(data)

        with ThreadPoolExecutor(1) as threads:
            keeping = threads.submit(keep_on_keeping)
            erasures = [vault.forget(each.token, "support") for each in players[:3]]
            stop.set()
            keeping.result()

        assert all(erasures)
        assert [len(vault.data_of(each.pseudonym)) for each in players] == [0] * 3 + [1] * 17

    def test_a_signature_is_used_once_whichever_process_gets_it(self, vault: Vault, open_again: OpenVault) -> None:
        in_a_minute = datetime.now(UTC) + timedelta(minutes=1)
        other = open_again()

        assert vault.use_signature(b"one", in_a_minute)
        assert not vault.use_signature(b"one", in_a_minute)
        assert not other.use_signature(b"one", in_a_minute)
        assert other.use_signature(b"another", in_a_minute)

    def test_one_of_many_that_use_a_signature_at_once_succeeds(self, vault: Vault, open_again: OpenVault) -> None:
        in_a_minute, both = datetime.now(UTC) + timedelta(minutes=1), [vault, open_again()]

        with ThreadPoolExecutor(8) as threads:
            used = [threads.submit(both[n % 2].use_signature, b"one", in_a_minute) for n in range(40)]

        assert sum(each.result() for each in used) == 1

    def test_signatures_are_forgotten_once_they_have_expired(self, vault: Vault) -> None:
        now = datetime.now(UTC)
        assert vault.use_signature(b"expired", now - timedelta(minutes=1))
        assert vault.use_signature(b"valid", now + timedelta(minutes=1))

        assert vault.use_signature(b"expired", now + timedelta(minutes=1))
        assert not vault.use_signature(b"valid", now + timedelta(minutes=1))

    def test_the_key_encryption_key_can_be_replaced(self, keys: VaultKeys, vault: Vault, tmp_path: Path) -> None:
        stored, key = a_player(keys)
        vault.add([stored])
        newer = VaultKeys.read(key_file(tmp_path, current="second"))

        (old,) = vault.wrapped_otherwise("second", 10)
        assert vault.rewrap([Rewrapping(before=old, after=newer.rewrapped(old))]) == 1

        row = vault.find([stored.token])[stored.token]
        assert row.key_id == "second"
        assert newer.unwrap(row).pseudonym == key.pseudonym
        assert vault.wrapped_otherwise("second", 10) == []
        assert vault.players_by_key() == {"second": 1}

    def test_players_forgotten_or_rewrapped_in_the_meantime_stay_so(self, vault: Vault) -> None:
        gone, changed, there = rows(3)
        vault.add([gone, changed, there])
        vault.forget(gone.token, "support")
        by_another = msgspec.structs.replace(changed, key_id="second", wrapped_key=b"another's")
        vault.rewrap([Rewrapping(before=changed, after=by_another)])

        ours = [
            Rewrapping(before=each, after=msgspec.structs.replace(each, key_id="third", wrapped_key=b"ours"))
            for each in (gone, changed, there)
        ]

        assert vault.rewrap(ours) == 1
        assert vault.find([gone.token]) == {}
        assert vault.find([changed.token])[changed.token] == by_another
        assert vault.players_by_key() == {"second": 1, "third": 1}

    def test_all_players_get_the_current_key_while_others_come_and_go(
        self, keys: VaultKeys, vault: Vault, open_again: OpenVault, tmp_path: Path
    ) -> None:
        made = [a_player(keys, f"player-{number}") for number in range(700)]
        vault.add([row for row, _ in made])
        newer, other = VaultKeys.read(key_file(tmp_path, current="second")), open_again()
        gone = max((row for row, _ in made), key=lambda row: row.token)
        latecomer, latecomers_key = a_player(keys, "player-with-the-old-key")
        counts: list[int] = []

        def let_others_come_and_go(count: int) -> None:
            counts.append(count)
            if len(counts) == 1:
                other.forget(gone.token, "support")
                other.add([latecomer])

        rotation = rewrap_all(vault, newer, let_others_come_and_go)

        assert rotation == Rotation(current="second", rewrapped=700, unreadable=(), wrapped_by={"second": 700})
        assert vault.find([gone.token]) == {}
        found = vault.find([each.token for each in [*(row for row, _ in made), latecomer]])
        pseudonyms = {newer.unwrap(row).pseudonym for row in found.values()}
        assert pseudonyms == {each.pseudonym for each in [*(key for _, key in made), latecomers_key]} - {gone.pseudonym}

    def test_a_player_that_can_not_be_read_stops_no_other(self, keys: VaultKeys, vault: Vault, tmp_path: Path) -> None:
        broken = rows(2)
        vault.add([*broken, a_player(keys)[0]])

        rotation = rewrap_all(vault, VaultKeys.read(key_file(tmp_path, current="second")), lambda _count: None)

        assert (rotation.rewrapped, rotation.is_complete) == (1, False)
        assert set(rotation.unreadable) == {each.pseudonym for each in broken}
        assert rotation.wrapped_by == {"first": 2, "second": 1}

    def test_a_lost_vault_comes_back_from_its_backup(
        self, keys: VaultKeys, vault: Vault, lost_and_new: OpenVault, tmp_path: Path
    ) -> None:
        made = [a_player(keys, f"player-{number}") for number in range(600)]
        vault.add([row for row, _ in made])
        vault.keep([sealed(key, b"mail") for _, key in made])
        contents = back_up(vault, keys, tmp_path / "backup", print)
        new = lost_and_new()
        assert new.find([made[0][0].token]) == {}

        assert check_backup(tmp_path / "backup", keys) == contents == BackupContents(players=600, data=600, erasures=0)
        restored = restore(new, keys, tmp_path / "backup", print)

        assert restored == RestoredPlayers(restored=600)
        for row, key in made[::100]:
            assert new.find([row.token]) == {row.token: row}
            assert [key.open(each) for each in new.data_of(key.pseudonym)] == [b"mail"]
        assert restore(new, keys, tmp_path / "backup", print) == RestoredPlayers(skipped=600)

    def test_an_old_backup_restores_no_player_erased_after_it(
        self, keys: VaultKeys, vault: Vault, lost_and_new: OpenVault, bytes_on_disk: Callable[[], bytes], tmp_path: Path
    ) -> None:
        erased, key = a_player(keys, "player-erased")
        stays, _ = a_player(keys, "player-stays")
        vault.take([erased, stays], [sealed(key, b"mail")])
        back_up(vault, keys, tmp_path / "backup", print)
        vault.forget(erased.token, "support")
        export_erasures(vault, keys, tmp_path / "erasures")
        new = lost_and_new()

        assert new.enforce(list(erasures_in(tmp_path / "erasures"))) == 0
        restored = restore(new, keys, tmp_path / "backup", print)

        assert restored == RestoredPlayers(restored=1, skipped=1)
        assert dict(new.find([erased.token, stays.token])) == {stays.token: stays}
        assert new.data_of(key.pseudonym) == []
        assert [each.pseudonym for each in new.erasures_after(0)] == [erased.pseudonym]
        assert erased.wrapped_key not in bytes_on_disk()

    def test_players_restored_with_a_copy_of_the_database_are_dropped_by_the_list_of_erasures(
        self, keys: VaultKeys, vault: Vault, bytes_on_disk: Callable[[], bytes]
    ) -> None:
        erased, key = a_player(keys)
        vault.take([erased, *rows(3)], [sealed(key, b"mail")])
        known = Erasure(number=7, game=GAME, pseudonym=erased.pseudonym, erased_at=datetime.now(UTC), erased_by="x")

        assert (vault.enforce([known, known]), vault.enforce([known])) == (1, 0)

        assert vault.find([erased.token]) == {}
        assert vault.data_of(key.pseudonym) == []
        assert [each.pseudonym for each in vault.erasures_after(0)] == [erased.pseudonym]
        assert vault.destroy_remains()
        assert erased.wrapped_key not in bytes_on_disk()

    def test_a_restore_leaves_players_that_came_back_in_the_meantime(
        self, keys: VaultKeys, vault: Vault, lost_and_new: OpenVault, tmp_path: Path
    ) -> None:
        before, key = a_player(keys)
        vault.take([before], [sealed(key, b"mail")])
        back_up(vault, keys, tmp_path / "backup", print)
        new = lost_and_new()
        after, _ = a_player(keys)
        new.add([after])

        assert restore(new, keys, tmp_path / "backup", print) == RestoredPlayers(skipped=1)
        assert new.find([before.token]) == {before.token: after}
        assert new.data_of(key.pseudonym) == []
