"""Concurrent requests share the vault's transactions, but not their errors."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from gamelake.privacy.vault.keyring import VaultKeyring
from gamelake.privacy.vault.secrecy import PlayerKey, TamperedError, VaultKeys
from gamelake.privacy.vault.sqlite_vault import SqliteVault
from gamelake.privacy.vault.vault import Rewrapping, SealedData, StoredPlayer, VaultRefusedError
from services.gateway.personal.pseudonymization import PersonalData, Player, UnownedData
from services.gateway.personal.vault_client import BatchedVault
from tests.support.vault_keys import key_file

GAME = "archery_duel"


class CountingVault(SqliteVault):
    """Counts its transactions, and refuses the data of one player."""

    transactions = 0
    refused = ""

    def take(self, players: Sequence[StoredPlayer], data: Sequence[SealedData]) -> Mapping[bytes, StoredPlayer]:
        self.transactions += 1
        if any(each.pseudonym == self.refused for each in data):
            raise VaultRefusedError("not this one")
        return super().take(players, data)


@pytest.fixture
def counting(tmp_path: Path) -> Iterator[CountingVault]:
    opened = CountingVault(tmp_path / "counting.db")
    yield opened
    opened.close()


@pytest.fixture
def vault_client(counting: CountingVault, tmp_path: Path) -> BatchedVault:
    return BatchedVault(counting, VaultKeyring(key_file(tmp_path)))


def test_sixty_requests_with_new_players_need_few_transactions(
    counting: CountingVault, vault_client: BatchedVault
) -> None:
    async def run() -> set[str]:
        asked = [vault_client.keys_of(GAME, [f"p{number}", "shared"]) for number in range(60)]
        return {key.pseudonym for found in await asyncio.gather(*asked) for key in found.values()}

    assert len(asyncio.run(run())) == 61
    assert counting.transactions <= 2


def test_new_players_and_their_data_are_stored_in_one_transaction(
    counting: CountingVault, vault_client: BatchedVault
) -> None:
    found = asyncio.run(vault_client.keys_of(GAME, ["a", "b"], [UnownedData("a", b"mail"), UnownedData("a", b"phone")]))

    assert counting.transactions == 1
    assert {found["a"].open(sealed) for sealed in counting.data_of(found["a"].pseudonym)} == {b"mail", b"phone"}
    assert counting.data_of(found["b"].pseudonym) == []


def test_the_data_of_a_player_that_another_process_adds_at_the_same_time_is_stored_under_the_players_key(
    counting: CountingVault, vault_client: BatchedVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = asyncio.run(vault_client.keys_of(GAME, ["a"]))["a"]
    # The other process reads before the first one writes, and writes after it.
    monkeypatch.setattr(counting, "find", lambda _tokens: {})

    found = asyncio.run(vault_client.keys_of(GAME, ["a"], [UnownedData("a", b"mail")]))["a"]

    assert found.pseudonym == added.pseudonym
    assert [added.open(sealed) for sealed in counting.data_of(added.pseudonym)] == [b"mail"]


def test_a_refused_row_fails_only_its_own_request(counting: CountingVault, vault_client: BatchedVault) -> None:
    async def run() -> list[BaseException | None]:
        keys = await vault_client.keys_of(GAME, ["a", "b", "c", "d"])
        counting.refused = keys["c"].pseudonym
        stored = [vault_client.store(GAME, [PersonalData(Player(key, name), b"mail")]) for name, key in keys.items()]
        return await asyncio.gather(*stored, return_exceptions=True)

    results = asyncio.run(run())

    assert [type(result) for result in results] == [type(None), type(None), VaultRefusedError, type(None)]


def test_a_changed_row_fails_only_its_own_request(
    counting: CountingVault, vault_client: BatchedVault, keys: VaultKeys
) -> None:
    token = keys.token(GAME, "b")
    changed = StoredPlayer(token=token, game=GAME, pseudonym="0" * 32, key_id="first", wrapped_key=b"changed")
    counting.add([changed])

    async def run() -> list[Mapping[str, PlayerKey] | BaseException]:
        asked = [vault_client.keys_of(GAME, [name]) for name in ("first", "a", "b", "c")]
        return await asyncio.gather(*asked, return_exceptions=True)

    results = asyncio.run(run())

    assert [isinstance(result, TamperedError) for result in results] == [False, False, True, False]


def test_rotated_keys_are_used_at_once(vault_client: BatchedVault, counting: CountingVault, tmp_path: Path) -> None:
    before = asyncio.run(vault_client.keys_of(GAME, ["a"]))["a"]
    newer = VaultKeys.read(key_file(tmp_path, current="second"))
    (row,) = counting.wrapped_otherwise("second", 10)
    counting.rewrap([Rewrapping(before=row, after=newer.rewrapped(row))])

    again = asyncio.run(vault_client.keys_of(GAME, ["a", "b"]))

    assert again["a"].pseudonym == before.pseudonym
    assert counting.players_by_key() == {"second": 2}
