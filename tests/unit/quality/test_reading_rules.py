"""Rules as they are written: what is read, and what is refused with its file, its line and what to do."""

from pathlib import Path

import pytest

from gamelake.model.errors import ContractError
from gamelake.model.games import load_games
from gamelake.quality.checking import check_rules
from gamelake.quality.rules import Severity, load_rules
from gamelake.storage.store import Location, Store
from gamelake.streaming.rules import known_columns
from tests.unit.quality.ruling import a_rule, checked, loaded, written


def test_a_rule_says_what_must_hold_of_whom_and_why(tmp_path: Path) -> None:
    (rule,) = loaded(tmp_path, a_rule(games=["chess"], why="a price\n  is not negative")).rules

    assert (rule.name, rule.severity, rule.owner, rule.why) == (
        "paid",
        Severity.QUARANTINE,
        "sales",
        "a price is not negative",
    )
    assert rule.columns == ("amount",)
    assert rule.applies_to("chess")
    assert not rule.applies_to("pool")
    assert rule.location == f"{tmp_path}/rules.yaml:2"


def test_the_rules_of_all_files_are_in_force_together_the_weightiest_first(tmp_path: Path) -> None:
    written(tmp_path, a_rule("b", severity="warn"), a_rule("d", severity="drop"), file="one.yaml")
    written(tmp_path, a_rule("a", severity="fail"), a_rule("c"), file="two.yaml")

    assert [rule.name for rule in load_rules(tmp_path).rules] == ["a", "c", "d", "b"]


def test_a_folder_without_rules_is_a_set_without_rules(tmp_path: Path) -> None:
    assert load_rules(tmp_path).rules == ()
    assert load_rules(tmp_path).fingerprint == ""


@pytest.mark.parametrize(
    ("rule", "line", "told"),
    [
        (a_rule(severity="sometimes"), 4, "severity"),
        (a_rule(owner=None), 2, "owner"),
        (a_rule(whence="me"), 7, "unknown key 'whence'"),
        (a_rule(name="Paid Much"), 2, "name"),
        (a_rule(games=[]), 7, "games"),
        (a_rule(expect="amount >="), 3, "is no SQL expression"),
        (a_rule(expect="amount > 0) FROM other WHERE (true"), 3, "more than one SQL expression"),
        (a_rule(expect="amount > 0), (level > 0"), 3, "more than one SQL expression"),
        (a_rule(expect="1 = 1"), 3, "names no column"),
        (a_rule(expect="amount > (SELECT 1)"), 3, "queries another table"),
        (a_rule(expect="amount > avg(amount) OVER ()"), 3, "uses other rows"),
        (a_rule(expect="sum(amount) > 0"), 3, r"calls sum\(\)"),
        (a_rule(expect="amount > random()"), 3, r"calls random\(\)"),
        (a_rule(expect="event_time < now()"), 3, r"calls now\(\)"),
        (a_rule(expect="amount > lookup(level)"), 3, r"calls lookup\(\)"),
        (a_rule(expect="COLUMNS(*) IS NOT NULL"), 3, "names all columns"),
    ],
)
def test_what_is_no_rule_is_refused_with_its_place(
    tmp_path: Path, rule: dict[str, object], line: int, told: str
) -> None:
    with pytest.raises(ContractError, match=rf"rules\.yaml:{line}: .*{told}"):
        loaded(tmp_path, rule)


def test_two_rules_of_one_name_are_refused(tmp_path: Path) -> None:
    written(tmp_path, a_rule(), file="one.yaml")
    written(tmp_path, a_rule(), file="two.yaml")

    with pytest.raises(ContractError, match=r"two\.yaml:2: .* is already defined at .*one\.yaml:2; rename one"):
        load_rules(tmp_path)


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (a_rule(expect="amuont >= 0"), "names the column 'amuont', which no schema has"),
        (a_rule(expect="purchase.price > 0"), "can't be evaluated"),
        (a_rule(expect="amount + 1"), "gives DOUBLE; write a condition"),
        (a_rule(expect="regexp_full_match(level, 'x')"), "can't be evaluated"),
        (a_rule(games=["ludo"]), "is for the game 'ludo', which the games contract doesn't list"),
    ],
)
def test_a_rule_that_can_judge_nothing_is_found_before_any_row_comes(
    tmp_path: Path, rule: dict[str, object], told: str
) -> None:
    with pytest.raises(ContractError, match=rf"rules\.yaml:2: .*{told}"):
        checked(tmp_path, rule)


def test_a_rule_is_the_same_however_it_is_written(tmp_path: Path) -> None:
    (one,) = loaded(tmp_path / "one", a_rule(expect="amount>=0 and LEVEL<5")).rules
    (two,) = loaded(tmp_path / "two", a_rule(expect="(amount >= 0)\n  AND level < 5", owner="you", why="so")).rules

    assert one.columns == two.columns == ("amount", "level")
    assert one.fingerprint == loaded(tmp_path / "one", a_rule(expect="amount >= 0 AND LEVEL < 5")).rules[0].fingerprint
    assert len(one.fingerprint) == 12


@pytest.mark.parametrize("change", [{"expect": "amount > 0"}, {"severity": "warn"}])
def test_a_rule_that_means_another_thing_has_another_fingerprint(tmp_path: Path, change: dict[str, object]) -> None:
    before, after = loaded(tmp_path / "a", a_rule()), loaded(tmp_path / "b", a_rule() | change)

    assert before.rules[0].fingerprint != after.rules[0].fingerprint
    assert before.fingerprint != after.fingerprint


def test_the_platforms_own_rules_can_be_evaluated(tmp_path: Path) -> None:
    games_file = Path("contracts/games.yaml")
    columns = known_columns(games_file, Store(Location(uri=tmp_path.as_uri())), [])

    rules = check_rules(
        load_rules(Path("quality/rules")), columns, [game.name for game in load_games(games_file).games]
    )

    assert len([rule for rule in rules.rules.rules if not rule.games]) >= 20
    assert {rule.severity for rule in rules.rules.rules} <= {Severity.WARN, Severity.QUARANTINE}
