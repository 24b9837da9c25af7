"""The games contract: each kind of mistake is named with the line it stands on."""

from pathlib import Path

import pytest

from gamelake.contract.games import PartitionColumn, UnlistedGames, load_games, parse_size
from gamelake.model.errors import ContractError

_GOOD = """\
games:
  - name: kart_rumble
    match: [Kart Rumble, Kart Rumble 2]
  - name: yeti_ski
    match: [Yeti Ski]
    partition_by: [event_date, platform]
    target_file_size: 1 GiB
"""


def _written(folder: Path, text: str) -> Path:
    path = folder / "games.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_keys_that_are_left_out_have_defaults(tmp_path: Path) -> None:
    contract = load_games(_written(tmp_path, _GOOD))

    kart, yeti = contract.games
    assert (kart.game_name, kart.table) == ("Kart Rumble", "silver/kart_rumble_events")
    assert (kart.partition_by, kart.target_file_bytes) == ((PartitionColumn.EVENT_DATE,), 128 * 2**20)
    assert (yeti.partition_by[1], yeti.target_file_bytes) == (PartitionColumn.PLATFORM, 2**30)
    assert contract.unlisted_games is UnlistedGames.DEAD_LETTERS
    assert (contract.event_time.max_age.days, contract.event_time.max_ahead.days) == (400, 2)


def test_the_contract_of_the_platform_has_thirty_games() -> None:
    contract = load_games(Path("contracts/games.yaml"))

    assert len(contract.games) == 30
    assert len({game.table for game in contract.games}) == 30


def _aggregates(first: str, second: str, over: str = "each_game") -> str:
    """Two aggregates, in lines 9 and 10; `over` is of the second."""
    rest = "group_by: [platform], refresh: partition, columns: {n: count(*)}"
    return f"aggregates:\n  - {{name: {first}, {rest}}}\n  - {{name: {second}, over: {over}, {rest}}}\n"


_MISTAKES = {
    "unknown key": ("gamez: []\n" + _GOOD, 1, "unknown key 'gamez'"),
    "unknown key of a game": (_GOOD + "    colour: red\n", 8, "unknown key 'colour'"),
    "key twice": (_GOOD + "    match: [Yeti]\n", 8, "the key 'match' is there twice"),
    "missing key": ("games:\n  - name: kart\n", 2, "missing required field `match`"),
    "no games": ("games: []\n", 1, "Expected `array` of length >= 1"),
    "no document": ("", 1, "Expected `object`, got `null`"),
    "a list": ("- games\n", 1, "Expected `object`, got `array`"),
    "bad name": (_GOOD.replace("yeti_ski", "Yeti Ski"), 4, "Expected `str` matching regex"),
    "no match": (_GOOD.replace("[Yeti Ski]", "[]"), 5, "Expected `array` of length >= 1"),
    "empty match": (_GOOD.replace("[Yeti Ski]", "['  ']"), 5, "matches an empty game_name"),
    "name twice": (_GOOD.replace("yeti_ski", "kart_rumble"), 4, "'kart_rumble' is listed twice"),
    "match twice": (_GOOD.replace("Yeti Ski", "Kart Rumble 2"), 5, "claimed by both 'kart_rumble' and 'yeti_ski'"),
    "unknown partition": (_GOOD.replace("platform", "country"), 6, "Invalid enum value 'country'"),
    "partition order": (_GOOD.replace("[event_date, platform]", "[platform, event_date]"), 6, "by event_date first"),
    "partition twice": (_GOOD.replace("platform", "event_date"), 6, "names a partition column twice"),
    "no size": (_GOOD.replace("1 GiB", "1 GB"), 7, "Expected `str` matching regex"),
    "unknown zone": (
        _GOOD + "    time_zone: Asia/Tokio\n",
        8,
        "'yeti_ski' has the unknown time zone 'Asia/Tokio'; name one of the IANA database, such as Asia/Tokyo or",
    ),
    "too large": (_GOOD.replace("1 GiB", "2 GiB"), 7, "choose 1 MiB to 1 GiB"),
    "too small": (_GOOD.replace("1 GiB", "1 KiB"), 7, "choose 1 MiB to 1 GiB"),
    "unknown policy": (_GOOD + "unlisted_games: drop\n", 8, "Invalid enum value 'drop'"),
    "negative limit": (_GOOD + "max_unlisted_tables: -1\n", 8, "Expected `int` >= 0"),
    "limit of time": (_GOOD + "event_time:\n  max_age_days: 0\n", 9, "Expected `int` >= 1"),
    "one gold table of two games": (
        _GOOD.replace("yeti_ski", "kart_rumble_daily") + _aggregates("daily_sum", "sum"),
        10,
        "'sum' of 'kart_rumble_daily' has the table gold/kart_rumble_daily_sum, which 'daily_sum' of 'kart_rumble' has",
    ),
    "one gold table of a game and of all": (
        _GOOD + _aggregates("sum", "kart_rumble_sum", over="all_games"),
        10,
        "the table gold/kart_rumble_sum, which 'sum' of 'kart_rumble' has too; rename one",
    ),
    "a gold table of KPIs": (
        _GOOD.replace("yeti_ski", "kpi") + _aggregates("sum", "daily"),
        10,
        "'daily' of 'kpi' has the table gold/kpi_daily, which the platform itself has too; rename one",
    ),
    "a gold table of the platform": (_GOOD + _aggregates("sum", "quality", over="all_games"), 10, "gold/quality"),
    "a column that the table is grouped by": (
        _GOOD + _aggregates("sum", "max").replace("{n:", "{platform:"),
        9,
        "'sum' is grouped by 'platform', so no other column can have the name",
    ),
    "grouped by a column twice": (
        _GOOD + _aggregates("sum", "max").replace("[platform]", "[platform, platform]"),
        9,
        "'sum' is grouped by a column twice; remove one",
    ),
    "aggregate twice": (_GOOD + _aggregates("sum", "sum"), 10, "the table gold/kart_rumble_sum"),
    "no YAML": (_GOOD + "  }\n", 8, "expected"),
}


@pytest.mark.parametrize(("text", "line", "problem"), _MISTAKES.values(), ids=_MISTAKES)
def test_a_mistake_is_named_with_its_line(text: str, line: int, problem: str, tmp_path: Path) -> None:
    path = _written(tmp_path, text)

    with pytest.raises(ContractError) as caught:
        load_games(path)

    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert problem in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=r"games\.yaml:1: can't be read"):
        load_games(tmp_path / "games.yaml")


@pytest.mark.parametrize(("text", "size"), [("1 KiB", 2**10), ("128MiB", 2**27), ("1 GiB", 2**30)])
def test_sizes_are_in_bytes(text: str, size: int) -> None:
    assert parse_size(text) == size
