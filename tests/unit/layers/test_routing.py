"""Which table an event lands in."""

import pyarrow as pa
import pytest

from gamelake.contract.games import GamesContract, GameSpec, UnlistedGames
from gamelake.layers.routing import NOWHERE, Router

_KART = GameSpec(name="kart_rumble", match=("Kart Rumble", "Kart Rumble 2"))


def _router(unlisted: UnlistedGames, *known: str, most: int = 50) -> Router:
    contract = GamesContract(games=(_KART,), unlisted_games=unlisted, max_unlisted_tables=most)
    return Router(contract, known)


def _tables(router: Router, *names: str | None) -> list[str | None]:
    codes = router.route(pa.array(names, pa.string()))
    return [None if code == NOWHERE else router.tables[code] for code in codes]


def test_each_name_of_a_game_is_routed_to_its_table() -> None:
    router = _router(UnlistedGames.DEAD_LETTERS)

    assert _tables(router, "Kart Rumble 2", "Kart Rumble", "Kart Rumble") == ["silver/kart_rumble_events"] * 3


@pytest.mark.parametrize("name", [None, "", "kart rumble", "Kart Rumble ", "Other"])
def test_names_are_matched_exactly(name: str | None) -> None:
    assert _tables(_router(UnlistedGames.DEAD_LETTERS), name, "Kart Rumble") == [None, "silver/kart_rumble_events"]


def test_an_unlisted_game_gets_a_table_named_after_it() -> None:
    assert _tables(_router(UnlistedGames.OWN_TABLE), "New-Game 2", "new game 2") == ["silver/new_game_2_events"] * 2


@pytest.mark.parametrize(
    "name", [None, "", " ", "../../etc", "a/b", "9lives", "Ünter", "x" * 49, "a  b", "a\n", "a.b", "KART RUMBLE"]
)
def test_a_name_that_is_no_plain_table_name_gets_no_table(name: str | None) -> None:
    assert _tables(_router(UnlistedGames.OWN_TABLE), name) == [None]


def test_no_more_tables_are_made_for_unlisted_games_than_allowed() -> None:
    router = _router(UnlistedGames.OWN_TABLE, "silver/old_events", most=2)

    assert _tables(router, "One", "Two", "Old") == ["silver/one_events", None, "silver/old_events"]
    assert _tables(router, "Two", "One") == [None, "silver/one_events"]


def test_an_empty_batch_is_routed() -> None:
    assert _tables(_router(UnlistedGames.DEAD_LETTERS)) == []
