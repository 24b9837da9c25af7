"""What is personal in an event leaves it; players are known again until they are forgotten."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from services.ingest.personal.fields import personal_fields
from services.ingest.personal.guard import Guard
from services.ingest.personal.players import Players
from services.ingest.personal.protection import Belonging, Protection
from services.ingest.personal.secrecy import PlayerKey, VaultKeys
from services.ingest.personal.sqlite_vault import SqliteVault
from services.ingest.personal.vault import SealedData, StoredPlayer, VaultUnavailableError
from tests.unit.ingest.events import submitted

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


@pytest.fixture
def players(vault: SqliteVault, keys: VaultKeys) -> Players:
    return Players(vault, keys, remembered=3)


@pytest.fixture
def protection() -> Protection:
    return Protection(event_class(), personal_fields(submitted()))


def protect(protection: Protection, players: Players, *events: Message) -> list[Belonging]:
    names = [protection.player_of(event) for event in events]
    return protection.protect(events, players.look_up(GAME, dict.fromkeys(names)))


def test_nothing_personal_is_left_in_an_event_and_all_else_is(protection: Protection, players: Players) -> None:
    event = a_telling_event()

    protect(protection, players, event)

    left = event.SerializeToString()
    assert [secret for secret in SECRETS if secret.encode() in left] == []
    assert len(event.gamer_id) == 32  # type: ignore[attr-defined]
    assert event.event_params.level == 3  # type: ignore[attr-defined]


def test_what_was_cut_out_can_be_read_again_with_the_players_key_alone(
    protection: Protection, players: Players
) -> None:
    (belonging,) = protect(protection, players, a_telling_event())

    sealed = belonging.sealed()
    assert [secret for secret in SECRETS if secret.encode() in sealed.sealed] == []
    opened = event_class().FromString(belonging.player.key.open(sealed.sealed))
    assert opened.personal.email == SECRETS[0]  # type: ignore[attr-defined]
    assert opened.event_params.device_id == SECRETS[4]  # type: ignore[attr-defined]
    assert SECRETS[0] not in repr(belonging)


def test_an_event_with_nothing_to_hide_costs_the_vault_nothing(protection: Protection, players: Players) -> None:
    assert protect(protection, players, an_event()) == []


def test_the_same_data_goes_to_the_vault_once(protection: Protection, players: Players) -> None:
    (belonging,) = protect(protection, players, a_telling_event(), a_telling_event())
    belonging.player.is_kept(belonging.data)

    again = protection.protect([a_telling_event()], {"player-1": belonging.player})

    assert again == []


def test_the_same_player_has_the_same_pseudonym_in_every_process(
    vault: SqliteVault, keys: VaultKeys, protection: Protection
) -> None:
    events = [an_event(), an_event("player-2"), an_event()]
    for event in events:
        protect(protection, Players(vault, keys, remembered=3), event)

    first, second, third = (event.gamer_id for event in events)  # type: ignore[attr-defined]
    assert first == third != second


def test_players_are_remembered_and_the_longest_unseen_are_let_go(players: Players) -> None:
    for name in ("a", "b", "c"):
        players.remember(GAME, players.look_up(GAME, [name]))
    players.known(GAME, "a")
    players.remember(GAME, players.look_up(GAME, ["d"]))

    assert [name for name in ("a", "b", "c", "d") if players.known(GAME, name) is None] == ["b"]
    assert players.known("bingo_harbor", "a") is None


def test_a_player_who_was_forgotten_elsewhere_is_forgotten_here(
    vault: SqliteVault, keys: VaultKeys, players: Players
) -> None:
    players.remember(GAME, players.look_up(GAME, ["a", "b"]))
    before = players.known(GAME, "a")
    vault.forget(keys.token(GAME, "a"))

    players.let_go(players.erased_since())

    assert players.known(GAME, "a") is None
    assert players.known(GAME, "b") is not None
    assert players.erased_since() == []
    again = players.look_up(GAME, ["a"])["a"]
    assert before is not None
    assert again.key.pseudonym != before.key.pseudonym


def test_two_processes_that_meet_a_new_player_at_once_agree(
    vault: SqliteVault, keys: VaultKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = Players(vault, keys, remembered=3), Players(vault, keys, remembered=3)
    first = one.look_up(GAME, ["a"])["a"]
    # The other asked before the first was there, and adds after it.
    monkeypatch.setattr(vault, "find", lambda _tokens: {})

    second = other.look_up(GAME, ["a"])["a"]

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

    def keep(self, data: Sequence[SealedData]) -> None:
        """See `Vault`."""
        if self.away:
            raise VaultUnavailableError("away")
        super().keep(data)


@pytest.fixture
def away_vault(tmp_path: Path) -> Iterator[AwayVault]:
    opened = AwayVault(tmp_path / "away.db")
    yield opened
    opened.close()


@pytest.fixture
def guard(away_vault: AwayVault, keys: VaultKeys, protection: Protection) -> Guard:
    return Guard(away_vault, Players(away_vault, keys, remembered=2), protection)


def test_the_vault_has_what_an_event_lost_before_the_event_goes_on(
    guard: Guard, away_vault: AwayVault, keys: VaultKeys
) -> None:
    event = a_telling_event()

    asyncio.run(guard.protect(GAME, [event]))

    token = keys.token(GAME, "player-1")
    row = away_vault.find([token])[token]
    key = keys.unwrap(row.game, row.wrapped_key, row.key_id, token)
    (sealed,) = away_vault.data_of(event.gamer_id)  # type: ignore[attr-defined]
    assert event_class().FromString(key.open(sealed)).personal.email == SECRETS[0]  # type: ignore[attr-defined]


def test_a_batch_of_more_players_than_are_remembered_is_protected_whole(guard: Guard) -> None:
    events = [an_event(f"player-{number % 5}") for number in range(20)]

    asyncio.run(guard.protect(GAME, events))

    assert len({event.gamer_id for event in events}) == 5  # type: ignore[attr-defined]


def test_while_the_vault_is_away_nothing_passes_that_it_would_have_to_keep(guard: Guard, away_vault: AwayVault) -> None:
    asyncio.run(guard.protect(GAME, [an_event()]))
    away_vault.away = True

    for event in (an_event("somebody-new"), a_telling_event()):
        with pytest.raises(VaultUnavailableError):
            asyncio.run(guard.protect(GAME, [event]))
    plain = an_event()
    asyncio.run(guard.protect(GAME, [plain]))

    assert len(plain.gamer_id) == 32  # type: ignore[attr-defined]


def test_whoever_is_forgotten_elsewhere_gets_another_pseudonym_here(
    guard: Guard, away_vault: AwayVault, keys: VaultKeys
) -> None:
    before, after = an_event(), an_event()
    asyncio.run(guard.protect(GAME, [before]))
    away_vault.forget(keys.token(GAME, "player-1"))

    asyncio.run(guard.let_go_of_the_erased())
    asyncio.run(guard.protect(GAME, [after]))

    assert before.gamer_id != after.gamer_id  # type: ignore[attr-defined]
