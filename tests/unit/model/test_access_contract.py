"""The access contract: what it may say, and that an error names file and line."""

from pathlib import Path

import pytest

from gamelake.contract.access import Duty, load_access
from gamelake.contract.games import load_games
from gamelake.model.errors import ContractError

CONTRACTS = Path("contracts")
GAMES = load_games(CONTRACTS / "games.yaml")
TEXT = """\
pseudonyms: [gamer_id]
tables_of_all_games:
  silver.events: game_name
roles:
  - {name: analyst, description: reads, reads: [silver], pseudonyms: masked}
  - {name: game_analyst, description: reads, reads: [gold], games: own}
users:
  - {name: anna, role: analyst}
  - {name: ben, role: game_analyst, games: [kart_rumble]}
"""


def load(folder: Path, text: str) -> None:
    file = folder / "access.yaml"
    file.write_text(text)
    load_access(file, GAMES)


def test_the_committed_contract_has_a_user_for_each_role() -> None:
    contract = load_access(CONTRACTS / "access.yaml", GAMES)

    assert [role.name for role in contract.roles if not contract.users_of(role)] == []


def test_no_person_registers_tables_owns_views_or_operates_the_server_but_the_admin() -> None:
    contract = load_access(CONTRACTS / "access.yaml", GAMES)
    duties = {Duty.REGISTER_TABLES, Duty.OWN_VIEWS, Duty.OPERATE}

    assert {user.name for user in contract.users if duties & set(contract.role_of(user).may)} == {
        "admin",
        "catalog",
        "views",
    }


def test_a_good_contract_is_read(tmp_path: Path) -> None:
    load(tmp_path, TEXT)


@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        ("role: analyst}", "role: analyst, password: x}", 8, "unknown key 'password'"),
        ("role: analyst}", "role: boss}", 8, "'anna' has the role 'boss', which is not under roles"),
        ("name: anna", "name: ben", 9, "'ben' is listed twice"),
        ("name: anna", "name: internal", 8, "'internal' is the name of another secret"),
        ("name: anna", "name: 'anna|admin'", 8, "Expected `str` matching regex"),
        ("name: game_analyst", "name: analyst", 6, "'analyst' is listed twice"),
        (", games: [kart_rumble]", "", 9, "'ben' names no game"),
        ("role: analyst}", "role: analyst, games: [kart_rumble]}", 8, "'anna' names games, but its role reads all"),
        ("[kart_rumble]", "[cart_rumble]", 9, "'ben' names the game 'cart_rumble', which games.yaml does not have"),
        (
            "reads: [silver]",
            "reads: [silver, bronze]",
            5,
            "'analyst' has masked pseudonyms, and bronze has raw records",
        ),
        (
            "reads: [gold]",
            "reads: [gold, clones]",
            6,
            "'game_analyst' reads its own games, and clones can't be divided",
        ),
        ("silver.events: game_name", "silver.events: gamer_id", 2, "Invalid enum value 'gamer_id'"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, old: str, new: str, line: int, problem: str) -> None:
    assert old in TEXT

    with pytest.raises(ContractError) as raised:
        load(tmp_path, TEXT.replace(old, new, 1))

    assert f"access.yaml:{line}: " in str(raised.value)
    assert problem in str(raised.value)
