"""Rules are read from files; invalid ones are rejected with file, line and remedy."""

from pathlib import Path

import pytest

from gamelake.contract.games import load_games
from gamelake.model.errors import ContractError
from gamelake.objects.store import Location, Store
from gamelake.quality.checking import check_rules
from gamelake.quality.rules import Severity, load_rules
from gamelake.streaming.rules import known_columns
from tests.unit.quality.rules_and_rows import a_rule, checked, loaded, written


def test_a_rule_has_a_condition_games_an_owner_and_a_reason(tmp_path: Path) -> None:
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


def test_the_rules_of_all_files_form_one_set_the_most_severe_first(tmp_path: Path) -> None:
    written(tmp_path, a_rule("b", severity="warn"), a_rule("d", severity="drop"), file="one.yaml")
    written(tmp_path, a_rule("a", severity="fail"), a_rule("c"), file="two.yaml")

    assert [rule.name for rule in load_rules(tmp_path).rules] == ["a", "c", "d", "b"]


def test_a_folder_without_rules_is_a_set_without_rules(tmp_path: Path) -> None:
    assert load_rules(tmp_path).rules == ()
    assert load_rules(tmp_path).fingerprint == ""


@pytest.mark.parametrize(
    ("rule", "line", "message"),
    [
        (a_rule(severity="sometimes"), 4, "severity"),
        (a_rule(severity="quarantene"), 4, "must be fail, quarantine, drop or warn; did you mean quarantine"),
        (a_rule(severty="warn"), 7, "unknown key 'severty'; it must be name, .*did you mean severity"),
        (a_rule(owner=None), 2, "owner"),
        (a_rule(whence="me"), 7, "unknown key 'whence'"),
        (a_rule(name="Paid Much"), 2, "name"),
        (a_rule(games=[]), 7, "games"),
        (a_rule(expect="amount >="), 3, "is not a SQL expression"),
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
def test_an_invalid_rule_is_rejected_with_its_line(
    tmp_path: Path, rule: dict[str, object], line: int, message: str
) -> None:
    with pytest.raises(ContractError, match=rf"rules\.yaml:{line}: .*{message}"):
        loaded(tmp_path, rule)


def test_two_rules_with_one_name_are_rejected(tmp_path: Path) -> None:
    written(tmp_path, a_rule(), file="one.yaml")
    written(tmp_path, a_rule(), file="two.yaml")

    with pytest.raises(ContractError, match=r"two\.yaml:2: .* is already defined at .*one\.yaml:2; rename one"):
        load_rules(tmp_path)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (a_rule(expect="amuont >= 0"), "names the column 'amuont', which no schema has"),
        (a_rule(expect="purchase.price > 0"), "can't be evaluated"),
        (a_rule(expect="amount + 1"), "gives DOUBLE; write a condition"),
        (a_rule(expect="regexp_full_match(level, 'x')"), "can't be evaluated"),
        (a_rule(games=["ludo"]), "is for the game 'ludo', which the games contract doesn't list"),
    ],
)
def test_a_rule_that_can_not_be_evaluated_is_rejected_before_any_row(
    tmp_path: Path, rule: dict[str, object], message: str
) -> None:
    with pytest.raises(ContractError, match=rf"rules\.yaml:2: .*{message}"):
        checked(tmp_path, rule)


def test_the_fingerprint_does_not_depend_on_formatting(tmp_path: Path) -> None:
    (one,) = loaded(tmp_path / "one", a_rule(expect="amount>=0 and LEVEL<5")).rules
    (two,) = loaded(tmp_path / "two", a_rule(expect="(amount >= 0)\n  AND level < 5", owner="you", why="so")).rules

    assert one.columns == two.columns == ("amount", "level")
    assert one.fingerprint == loaded(tmp_path / "one", a_rule(expect="amount >= 0 AND LEVEL < 5")).rules[0].fingerprint
    assert len(one.fingerprint) == 12


@pytest.mark.parametrize("change", [{"expect": "amount > 0"}, {"severity": "warn"}])
def test_a_changed_rule_has_another_fingerprint(tmp_path: Path, change: dict[str, object]) -> None:
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
