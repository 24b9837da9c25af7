"""What is personal in an event leaves it; players are known again until they are forgotten."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from gamelake.privacy.vault.keyring import VaultKeyring
from gamelake.privacy.vault.secrecy import PlayerKey, VaultKeys
from gamelake.privacy.vault.sqlite_vault import SqliteVault
from gamelake.privacy.vault.vault import SealedData, StoredPlayer, Vault, VaultUnavailableError
from services.gateway.personal.fields import personal_fields
from services.gateway.personal.pseudonymization import Belonging, Player, Players, Protection
from services.gateway.personal.vault_client import Guard, Safekeeping
from tests.unit.gateway.events import submitted
from tests.vault_keys import key_file

GAME = "archery_duel"
SECRETS = ("mail@example.org", "192.0.2.7", "Ann Example", "call me on 555-0100", "device-4711", "player-1")


def event_class() -> type[Message]:
    return GetMessageClass(submitted())


def an_event(player: str = "player-1", **fields: object) -> Message:
    return event_class()(
        event_id="8f14e45f-ceea-467f-a8d6-0a1b2c3d4e5f", gamer_id=player, event_params={"level": 3}, **fields
    )


def a_telling_event() -> Message:
    personal = {"email": SECRETS[0], "ip_address": SECRETS[1], "player_name": SECRETS[2], "free_text": SECRETS[3]}
    event = an_event(personal=personal)
    event.event_params.device_id = SECRETS[4]  # type: ignore[attr-defined]
    return event


class Process:
    """A process of the service: what it remembers, and its way to the vault."""

    def __init__(self, vault: Vault, keyring: VaultKeyring) -> None:
        self.memory = Players(remembered=3)
        self.safekeeping = Safekeeping(vault, keyring)

    def meets(self, *names: str) -> Mapping[str, Player]:
        """Look players up and remember them."""
        return self.memory.remember(GAME, asyncio.run(self.safekeeping.keys_of(GAME, names)))

    def hears_of_erasures(self) -> None:
        """Let go of whom the vault has forgotten."""
        self.memory.let_go(self.safekeeping.erasures_after(self.memory.last_erasure))


@pytest.fixture
def keyring(tmp_path: Path) -> VaultKeyring:
    return VaultKeyring(key_file(tmp_path))


@pytest.fixture
def players(vault: SqliteVault, keyring: VaultKeyring) -> Process:
    return Process(vault, keyring)


@pytest.fixture
def protection() -> Protection:
    return Protection(submitted(), personal_fields(submitted()))


def protect(protection: Protection, process: Process, *events: Message) -> list[Belonging]:
    names = [protection.player_of(event) for event in events]
    return protection.protect(events, process.meets(*dict.fromkeys(names)))


def test_nothing_personal_is_left_in_an_event_and_all_else_is(protection: Protection, players: Process) -> None:
    event = a_telling_event()

    protect(protection, players, event)

    left = event.SerializeToString()
    assert [secret for secret in SECRETS if secret.encode() in left] == []
    assert len(event.gamer_id) == 32  # type: ignore[attr-defined]
    assert event.event_params.level == 3  # type: ignore[attr-defined]


def test_what_was_cut_out_can_be_read_again_with_the_players_key_alone(
    protection: Protection, players: Process
) -> None:
    (belonging,) = protect(protection, players, a_telling_event())

    sealed = belonging.sealed()
    assert [secret for secret in SECRETS if secret.encode() in sealed.sealed] == []
    opened = event_class().FromString(belonging.player.key.open(sealed.sealed))
    assert opened.personal.email == SECRETS[0]  # type: ignore[attr-defined]
    assert opened.event_params.device_id == SECRETS[4]  # type: ignore[attr-defined]
    assert SECRETS[0] not in repr(belonging)


def test_an_event_with_nothing_to_hide_costs_the_vault_nothing(protection: Protection, players: Process) -> None:
    assert protect(protection, players, an_event()) == []


def test_the_same_data_goes_to_the_vault_once(protection: Protection, players: Process) -> None:
    (belonging,) = protect(protection, players, a_telling_event(), a_telling_event())
    belonging.player.is_kept(belonging.cut_out)

    again = protection.protect([a_telling_event()], {"player-1": belonging.player})

    assert again == []


def test_the_same_player_has_the_same_pseudonym_in_every_process(
    vault: SqliteVault, keyring: VaultKeyring, protection: Protection
) -> None:
    events = [an_event(), an_event("player-2"), an_event()]
    for event in events:
        protect(protection, Process(vault, keyring), event)

    first, second, third = (event.gamer_id for event in events)  # type: ignore[attr-defined]
    assert first == third != second


def test_players_are_remembered_and_the_longest_unseen_are_let_go(players: Process) -> None:
    for name in ("a", "b", "c"):
        players.meets(name)
    players.memory.known(GAME, "a")
    players.meets("d")

    assert [name for name in ("a", "b", "c", "d") if players.memory.known(GAME, name) is None] == ["b"]
    assert players.memory.known("bingo_harbor", "a") is None


def test_a_player_who_was_forgotten_elsewhere_is_forgotten_here(
    vault: SqliteVault, keys: VaultKeys, players: Process
) -> None:
    before = players.meets("a", "b")["a"]
    vault.forget(keys.token(GAME, "a"), "support")

    players.hears_of_erasures()

    assert players.memory.known(GAME, "a") is None
    assert players.memory.known(GAME, "b") is not None
    assert players.safekeeping.erasures_after(players.memory.last_erasure) == []
    assert players.meets("a")["a"].key.pseudonym != before.key.pseudonym


def test_a_player_who_was_read_before_the_erasure_and_comes_after_it_is_not_remembered(
    vault: SqliteVault, keys: VaultKeys, players: Process
) -> None:
    read = asyncio.run(players.safekeeping.keys_of(GAME, ["a"]))
    vault.forget(keys.token(GAME, "a"), "support")
    players.hears_of_erasures()

    players.memory.remember(GAME, read)

    assert players.memory.known(GAME, "a") is None


def test_two_processes_that_meet_a_new_player_at_once_agree(
    vault: SqliteVault, keyring: VaultKeyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Process(vault, keyring).meets("a")["a"]
    # The other asked before the first was there, and adds after it.
    monkeypatch.setattr(vault, "find", lambda _tokens: {})

    second = Process(vault, keyring).meets("a")["a"]

    assert second.key.pseudonym == first.key.pseudonym


def test_a_key_has_the_same_pseudonym_for_ever() -> None:
    assert PlayerKey(GAME, bytes(range(32))).pseudonym == "e5adf757c9c056b012255fffbf4bed99"


class AwayVault(SqliteVault):
    """A vault that answers only while it is told to."""

    away = False

    def find(self, tokens: Sequence[bytes]) -> Mapping[bytes, StoredPlayer]:
        """See `Vault`."""
        if self.away:
            raise VaultUnavailableError("away")
        return super().find(tokens)

    def take(self, players: Sequence[StoredPlayer], data: Sequence[SealedData]) -> Mapping[bytes, StoredPlayer]:
        """See `Vault`."""
        if self.away:
            raise VaultUnavailableError("away")
        return super().take(players, data)


@pytest.fixture
def away_vault(tmp_path: Path) -> Iterator[AwayVault]:
    opened = AwayVault(tmp_path / "away.db")
    yield opened
    opened.close()


@pytest.fixture
def guard(away_vault: AwayVault, keyring: VaultKeyring, protection: Protection) -> Guard:
    return Guard(Players(remembered=2), Safekeeping(away_vault, keyring))


Pass = Callable[..., None]


@pytest.fixture
def pass_on(guard: Guard, protection: Protection) -> Pass:
    """What becomes of events in a request: protected, and passed on once the vault has what was cut out."""

    async def protected(events: Sequence[Message]) -> None:
        names = list(dict.fromkeys(protection.player_of(event) for event in events))
        known = {name: player for name in names if (player := guard.known(GAME, name)) is not None}
        strangers = [name for name in names if name not in known]
        introduced = await guard.introduce(GAME, strangers) if strangers else {}
        belongings = protection.protect(events, {**known, **introduced})
        if belongings:
            await guard.keep(GAME, belongings)

    return lambda *events: asyncio.run(protected(events))


def test_the_vault_has_what_an_event_lost_before_the_event_goes_on(
    pass_on: Pass, away_vault: AwayVault, keys: VaultKeys
) -> None:
    event = a_telling_event()

    pass_on(event)

    token = keys.token(GAME, "player-1")
    row = away_vault.find([token])[token]
    key = keys.unwrap(row)
    (sealed,) = away_vault.data_of(event.gamer_id)  # type: ignore[attr-defined]
    assert event_class().FromString(key.open(sealed)).personal.email == SECRETS[0]  # type: ignore[attr-defined]


def test_a_batch_of_more_players_than_are_remembered_is_protected_whole(pass_on: Pass) -> None:
    events = [an_event(f"player-{number % 5}") for number in range(20)]

    pass_on(*events)

    assert len({event.gamer_id for event in events}) == 5  # type: ignore[attr-defined]


def test_while_the_vault_is_away_nothing_passes_that_it_would_have_to_keep(
    pass_on: Pass, away_vault: AwayVault
) -> None:
    pass_on(an_event())
    away_vault.away = True

    for event in (an_event("somebody-new"), a_telling_event()):
        with pytest.raises(VaultUnavailableError):
            pass_on(event)
    plain = an_event()
    pass_on(plain)

    assert len(plain.gamer_id) == 32  # type: ignore[attr-defined]


def test_whoever_is_forgotten_elsewhere_gets_another_pseudonym_here(
    guard: Guard, pass_on: Pass, away_vault: AwayVault, keys: VaultKeys
) -> None:
    before, after = an_event(), an_event()
    pass_on(before)
    away_vault.forget(keys.token(GAME, "player-1"), "support")

    asyncio.run(guard.let_go_of_the_erased())
    pass_on(after)

    assert before.gamer_id != after.gamer_id  # type: ignore[attr-defined]
