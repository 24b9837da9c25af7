"""Personal data is removed from events; a player keeps the same pseudonym until the player is forgotten."""

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from gamelake.privacy.vault.keyring import VaultKeyring
from gamelake.privacy.vault.secrecy import PlayerKey, VaultKeys
from gamelake.privacy.vault.sqlite_vault import SqliteVault
from gamelake.privacy.vault.vault import Erasure, Vault, VaultUnavailableError
from services.gateway.personal.pseudonymization import PersonalData, Player, PlayerCache
from services.gateway.personal.vault_client import BatchedVault, PlayerStore
from tests.support.vault_keys import key_file
from tests.unit.gateway.events import GAME, cache_of, pseudonymizer, submitted
from tests.unit.gateway.worlds import Answer, FaultyVault

SECRETS = ("mail@example.org", "192.0.2.7", "Ann Example", "call me on 555-0100", "device-4711", "player-1")


def event_class() -> type[Message]:
    return GetMessageClass(submitted())


def an_event(player: str = "player-1", **fields: object) -> Message:
    return event_class()(
        event_id="8f14e45f-ceea-467f-a8d6-0a1b2c3d4e5f", gamer_id=player, event_params={"level": 3}, **fields
    )


def a_personal_event() -> Message:
    personal = {"email": SECRETS[0], "ip_address": SECRETS[1], "player_name": SECRETS[2], "free_text": SECRETS[3]}
    event = an_event(personal=personal)
    event.event_params.device_id = SECRETS[4]  # type: ignore[attr-defined]
    return event


class Process:
    """A process of the service: its cache of players and its vault client."""

    def __init__(self, vault: Vault, keyring: VaultKeyring) -> None:
        self.cache = cache_of(3)
        self.vault_client = BatchedVault(vault, keyring)

    def resolve(self, *names: str) -> Mapping[str, Player]:
        """Read players from the vault into the cache."""
        return self.cache.add(GAME, asyncio.run(self.vault_client.keys_of(GAME, names)))

    def apply_erasures(self) -> None:
        """Evict the players that were erased from the vault."""
        self.cache.evict_erased(self.vault_client.erasures_after(self.cache.last_erasure or 0))


def is_cached(process: Process, name: str) -> bool:
    return process.cache.find(GAME, [name]) != [None]


@pytest.fixture
def keyring(tmp_path: Path) -> VaultKeyring:
    return VaultKeyring(key_file(tmp_path))


@pytest.fixture
def players(vault: SqliteVault, keyring: VaultKeyring) -> Process:
    return Process(vault, keyring)


def pseudonymize(process: Process, *events: Message) -> list[PersonalData]:
    names = [pseudonymizer().player_of(event) for event in events]
    players = process.resolve(*dict.fromkeys(names))
    return without_personal_data(events, [players[name] for name in names])


def without_personal_data(events: Sequence[Message], owners: Sequence[Player]) -> list[PersonalData]:
    personal = [pseudonymizer().extractor.remove_from(event) for event in events]
    return pseudonymizer().pseudonymize(events, personal, owners)


def test_an_event_loses_its_personal_data_and_nothing_else(players: Process) -> None:
    event = a_personal_event()

    pseudonymize(players, event)

    left = event.SerializeToString()
    assert [secret for secret in SECRETS if secret.encode() in left] == []
    assert len(event.gamer_id) == 32  # type: ignore[attr-defined]
    assert event.event_params.level == 3  # type: ignore[attr-defined]


def test_personal_data_can_be_decrypted_only_with_the_players_key(players: Process) -> None:
    (data,) = pseudonymize(players, a_personal_event())

    sealed = data.sealed()
    assert [secret for secret in SECRETS if secret.encode() in sealed.sealed] == []
    opened = event_class().FromString(data.player.key.open(sealed.sealed))
    assert opened.personal.email == SECRETS[0]  # type: ignore[attr-defined]
    assert opened.event_params.device_id == SECRETS[4]  # type: ignore[attr-defined]
    assert SECRETS[0] not in repr(data)


def test_an_event_without_personal_data_stores_nothing(players: Process) -> None:
    assert pseudonymize(players, an_event()) == []


def test_the_same_data_is_stored_once(players: Process) -> None:
    (data,) = pseudonymize(players, a_personal_event(), a_personal_event())
    data.player.mark_stored(data.values)

    again = without_personal_data([a_personal_event()], [data.player])

    assert again == []


def test_the_same_player_has_the_same_pseudonym_in_every_process(vault: SqliteVault, keyring: VaultKeyring) -> None:
    events = [an_event(), an_event("player-2"), an_event()]
    for event in events:
        pseudonymize(Process(vault, keyring), event)

    first, second, third = (event.gamer_id for event in events)  # type: ignore[attr-defined]
    assert first == third != second


def test_the_least_recently_used_player_is_evicted(players: Process) -> None:
    for name in ("a", "b", "c"):
        players.resolve(name)
    players.cache.find(GAME, ["a"])
    players.resolve("d")

    assert [name for name in ("a", "b", "c", "d") if not is_cached(players, name)] == ["b"]
    assert players.cache.find("bingo_harbor", ["a"]) == [None]


def test_a_player_erased_by_another_process_is_evicted(vault: SqliteVault, keys: VaultKeys, players: Process) -> None:
    before = players.resolve("a", "b")["a"]
    vault.forget(keys.token(GAME, "a"), "support")

    players.apply_erasures()

    assert not is_cached(players, "a")
    assert is_cached(players, "b")
    assert players.vault_client.erasures_after(players.cache.last_erasure or 0) == []
    assert players.resolve("a")["a"].key.pseudonym != before.key.pseudonym


def test_a_player_read_before_and_added_after_the_erasure_is_not_cached(
    vault: SqliteVault, keys: VaultKeys, players: Process
) -> None:
    read = asyncio.run(players.vault_client.keys_of(GAME, ["a"]))
    vault.forget(keys.token(GAME, "a"), "support")
    players.apply_erasures()

    players.cache.add(GAME, read)

    assert not is_cached(players, "a")


def test_two_processes_that_add_a_new_player_at_once_get_the_same_pseudonym(
    vault: SqliteVault, keyring: VaultKeyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Process(vault, keyring).resolve("a")["a"]
    # The other process read before the first one wrote, and writes after it.
    monkeypatch.setattr(vault, "find", lambda _tokens: {})

    second = Process(vault, keyring).resolve("a")["a"]

    assert second.key.pseudonym == first.key.pseudonym


def test_a_key_always_has_the_same_pseudonym() -> None:
    assert PlayerKey(GAME, bytes(range(32))).pseudonym == "e5adf757c9c056b012255fffbf4bed99"


@pytest.fixture
def away_vault(tmp_path: Path) -> Iterator[FaultyVault]:
    opened = FaultyVault(tmp_path / "away.db")
    yield opened
    opened.close()


@pytest.fixture
def cache() -> PlayerCache:
    return cache_of(2)


@pytest.fixture
def player_store(cache: PlayerCache, away_vault: FaultyVault, keyring: VaultKeyring) -> PlayerStore:
    return PlayerStore(cache, BatchedVault(away_vault, keyring))


ProcessEvents = Callable[..., None]


@pytest.fixture
def process_events(cache: PlayerCache, player_store: PlayerStore) -> ProcessEvents:
    """Pseudonymize the events of a request; returns once the vault has their personal data."""

    async def pseudonymized(events: Sequence[Message]) -> None:
        names = [pseudonymizer().player_of(event) for event in events]
        known = dict(zip(names, cache.find(GAME, names), strict=True))
        unknown = [name for name, player in known.items() if player is None]
        resolved = await player_store.resolve(GAME, unknown) if unknown else {}
        owners = [known[name] or resolved[name] for name in names]
        personal_data = without_personal_data(events, owners)
        if personal_data:
            await player_store.store(GAME, personal_data)

    return lambda *events: asyncio.run(pseudonymized(events))


def test_the_vault_has_the_personal_data_before_the_event_is_sent(
    process_events: ProcessEvents, away_vault: FaultyVault, keys: VaultKeys
) -> None:
    event = a_personal_event()

    process_events(event)

    token = keys.token(GAME, "player-1")
    row = away_vault.find([token])[token]
    key = keys.unwrap(row)
    (sealed,) = away_vault.data_of(event.gamer_id)  # type: ignore[attr-defined]
    assert event_class().FromString(key.open(sealed)).personal.email == SECRETS[0]  # type: ignore[attr-defined]


def test_a_batch_of_more_players_than_the_cache_has_is_pseudonymized_whole(process_events: ProcessEvents) -> None:
    events = [an_event(f"player-{number % 5}") for number in range(20)]

    process_events(*events)

    assert len({event.gamer_id for event in events}) == 5  # type: ignore[attr-defined]


def test_while_the_vault_is_away_only_events_that_do_not_need_it_pass(
    process_events: ProcessEvents, away_vault: FaultyVault
) -> None:
    process_events(an_event())
    away_vault.plan = deque([Answer.LOST] * 100)

    for event in (an_event("new-player"), a_personal_event()):
        with pytest.raises(VaultUnavailableError):
            process_events(event)
    plain = an_event()
    process_events(plain)

    assert len(plain.gamer_id) == 32  # type: ignore[attr-defined]


@pytest.mark.parametrize("refreshes", [0, 1])
def test_a_player_erased_by_another_process_gets_another_pseudonym_from_the_first_refresh_on(
    player_store: PlayerStore, process_events: ProcessEvents, away_vault: FaultyVault, keys: VaultKeys, refreshes: int
) -> None:
    for _ in range(refreshes):
        asyncio.run(player_store.apply_erasures())
    before, after = an_event(), an_event()
    process_events(before)
    away_vault.forget(keys.token(GAME, "player-1"), "support")

    asyncio.run(player_store.apply_erasures())
    process_events(after)

    assert before.gamer_id != after.gamer_id  # type: ignore[attr-defined]


def test_a_new_process_reads_no_erasure_of_the_past_and_all_later_ones(
    player_store: PlayerStore, process_events: ProcessEvents, away_vault: FaultyVault, keys: VaultKeys, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "away.db")) as connection, connection:
        connection.execute(
            "INSERT INTO erasures (number, game, pseudonym, erased_at, erased_by, destroyed_at) "
            "VALUES (7, 'g', 'p', '?', 'support', '')"
        )
    asyncio.run(player_store.apply_erasures())
    before, after = an_event(), an_event()
    process_events(before)

    erasure = away_vault.forget(keys.token(GAME, "player-1"), "support")
    asyncio.run(player_store.apply_erasures())
    process_events(after)

    assert erasure is not None
    assert erasure.number == 8
    assert before.gamer_id != after.gamer_id  # type: ignore[attr-defined]


def test_the_cache_weighs_names_and_personal_values(cache: PlayerCache) -> None:
    cache = PlayerCache(100_000)
    (player,) = cache.add(GAME, {"n" * 10_000: PlayerKey.new(GAME)}).values()
    alone = cache.size

    cache.mark_stored(player, ("x" * 500, b"y" * 500))

    assert 10_000 < alone < 12_000
    assert 1_000 < cache.size - alone < 1_500
    cache.add(GAME, {f"{number}{'n' * 10_000}": PlayerKey.new(GAME) for number in range(9)})
    assert 50_000 < cache.size <= 100_000
    assert cache.find(GAME, ["n" * 10_000]) == [None]
    before = cache.size
    cache.mark_stored(player, ("z" * 1_000,))
    assert cache.size == before


def test_long_personal_values_are_not_remembered(cache: PlayerCache) -> None:
    (player,) = cache.add(GAME, {"ann": PlayerKey.new(GAME)}).values()
    before = cache.size

    cache.mark_stored(player, ("x" * 8_000, b""))

    assert (player.stored, cache.size) == (frozenset(), before)


def test_the_cache_frees_what_an_erased_player_takes(cache: PlayerCache) -> None:
    key = PlayerKey.new(GAME)
    cache.add(GAME, {"ann": key})

    cache.evict_erased(
        [Erasure(number=1, game=GAME, pseudonym=key.pseudonym, erased_at=datetime.now(UTC), erased_by="support")]
    )

    assert cache.size == 0
