"""Many requests share the vault's transactions, and nothing else: not their errors, and not more than fits."""

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from gamelake.privacy.vault.keyring import VaultKeyring
from gamelake.privacy.vault.secrecy import PlayerKey, TamperedError, VaultKeys
from gamelake.privacy.vault.sqlite_vault import SqliteVault
from gamelake.privacy.vault.vault import Rewrapping, SealedData, StoredPlayer, VaultRefusedError
from services.gateway.batching import Rounds, TooManyWaitError
from services.gateway.personal.pseudonymization import Belonging, Player
from services.gateway.personal.vault_client import Safekeeping
from tests.vault_keys import key_file

GAME = "archery_duel"


class Work:
    """Doubles numbers, in rounds that wait until they are let go; 13 can't be doubled."""

    def __init__(self) -> None:
        self.rounds: list[list[int]] = []
        self.go_on = threading.Event()

    def __call__(self, asked: Sequence[int]) -> list[int | Exception]:
        """One round."""
        self.rounds.append(list(asked))
        assert self.go_on.wait(10)
        return [ValueError("13") if each == 13 else 2 * each for each in asked]


async def ask_while_one_is_under_way(
    work: Work, numbers: Sequence[int], *, most: int = 100, most_waiting: int = 100
) -> list[int | BaseException]:
    rounds: Rounds[int, int] = Rounds(work, most=most, most_waiting=most_waiting)
    first = asyncio.create_task(rounds.ask(1, size=1))
    while not work.rounds:
        await asyncio.sleep(0)
    others = [asyncio.create_task(rounds.ask(each, size=1)) for each in numbers]
    await asyncio.sleep(0)
    work.go_on.set()
    return await asyncio.gather(first, *others, return_exceptions=True)


def test_whoever_comes_while_a_round_is_under_way_shares_the_next() -> None:
    work = Work()

    assert asyncio.run(ask_while_one_is_under_way(work, range(2, 10))) == [2 * each for each in range(1, 10)]
    assert work.rounds == [[1], list(range(2, 10))]


def test_a_round_takes_no_more_than_fits() -> None:
    work = Work()

    asyncio.run(ask_while_one_is_under_way(work, range(2, 10), most=3))

    assert work.rounds == [[1], [2, 3, 4], [5, 6, 7], [8, 9]]


def test_no_more_than_fit_may_wait() -> None:
    answers = asyncio.run(ask_while_one_is_under_way(Work(), range(2, 8), most_waiting=4))

    assert answers[:5] == [2, 4, 6, 8, 10]
    assert [type(answer) for answer in answers[5:]] == [TooManyWaitError] * 2


def test_an_error_of_one_is_the_error_of_no_other() -> None:
    answers = asyncio.run(ask_while_one_is_under_way(Work(), [12, 13, 14]))

    assert [answers[1], answers[3]] == [24, 28]
    assert isinstance(answers[2], ValueError)


def test_whoever_went_away_is_not_asked_for() -> None:
    work = Work()

    async def run() -> int:
        rounds: Rounds[int, int] = Rounds(work, most=9, most_waiting=9)
        first = asyncio.create_task(rounds.ask(1, size=1))
        while not work.rounds:
            await asyncio.sleep(0)
        gone, last = asyncio.create_task(rounds.ask(2, size=1)), asyncio.create_task(rounds.ask(3, size=1))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        work.go_on.set()
        await first
        return await last

    assert asyncio.run(run()) == 6
    assert work.rounds == [[1], [3]]


class CountingVault(SqliteVault):
    """Counts its transactions, and refuses the data of one player."""

    transactions = 0
    refused = ""

    def take(self, players: Sequence[StoredPlayer], data: Sequence[SealedData]) -> Mapping[bytes, StoredPlayer]:
        """See `Vault`."""
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
def safekeeping(counting: CountingVault, tmp_path: Path) -> Safekeeping:
    return Safekeeping(counting, VaultKeyring(key_file(tmp_path)))


def test_sixty_requests_with_new_players_are_a_few_transactions(
    counting: CountingVault, safekeeping: Safekeeping
) -> None:
    async def run() -> set[str]:
        asked = [safekeeping.keys_of(GAME, [f"p{number}", "everybody"]) for number in range(60)]
        return {key.pseudonym for found in await asyncio.gather(*asked) for key in found.values()}

    assert len(asyncio.run(run())) == 61
    assert counting.transactions <= 2


def test_a_row_that_the_vault_refuses_is_the_trouble_of_its_own_request(
    counting: CountingVault, safekeeping: Safekeeping
) -> None:
    async def run() -> list[BaseException | None]:
        keys = await safekeeping.keys_of(GAME, ["a", "b", "c", "d"])
        counting.refused = keys["c"].pseudonym
        kept = [safekeeping.keep(GAME, [Belonging(Player(key), b"mail")]) for key in keys.values()]
        return await asyncio.gather(*kept, return_exceptions=True)

    answers = asyncio.run(run())

    assert [type(answer) for answer in answers] == [type(None), type(None), VaultRefusedError, type(None)]


def test_a_player_whose_row_was_changed_is_the_trouble_of_its_own_request(
    counting: CountingVault, safekeeping: Safekeeping, keys: VaultKeys
) -> None:
    token = keys.token(GAME, "b")
    changed = StoredPlayer(token=token, game=GAME, pseudonym="0" * 32, key_id="first", wrapped_key=b"changed")
    counting.add([changed])

    async def run() -> list[Mapping[str, PlayerKey] | BaseException]:
        asked = [safekeeping.keys_of(GAME, [name]) for name in ("first", "a", "b", "c")]
        return await asyncio.gather(*asked, return_exceptions=True)

    answers = asyncio.run(run())

    assert [isinstance(answer, TamperedError) for answer in answers] == [False, False, True, False]


def test_a_key_that_was_changed_is_known_at_once(
    safekeeping: Safekeeping, counting: CountingVault, tmp_path: Path
) -> None:
    before = asyncio.run(safekeeping.keys_of(GAME, ["a"]))["a"]
    newer = VaultKeys.read(key_file(tmp_path, current="second"))
    (row,) = counting.wrapped_otherwise("second", 10)
    counting.rewrap([Rewrapping(before=row, after=newer.rewrapped(row))])

    again = asyncio.run(safekeeping.keys_of(GAME, ["a", "b"]))

    assert again["a"].pseudonym == before.pseudonym
    assert counting.players_by_key() == {"second": 2}
