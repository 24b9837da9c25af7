"""Rules that change while a stream runs: good ones are taken, broken ones leave those in force that were good."""

from pathlib import Path

import pyarrow as pa
import pytest

from gamelake.model.errors import ContractError
from gamelake.quality.checking import CheckedRules, check_rules
from gamelake.quality.rules import RuleSet
from gamelake.quality.rules_in_force import WatchedRules
from tests.unit.quality.ruling import COLUMNS, GAMES, a_rule, written


class _Schemas:
    """What rows are known to have, which may grow."""

    def __init__(self) -> None:
        self.columns = COLUMNS

    def check(self, rules: RuleSet) -> CheckedRules:
        return check_rules(rules, self.columns, GAMES)


def _names(watched: WatchedRules) -> list[str]:
    return [rule.name for rule in watched.now().rules.rules]


def test_a_rule_that_is_added_changed_or_taken_out_is_in_force_at_the_next_look(tmp_path: Path) -> None:
    watched = WatchedRules(written(tmp_path, a_rule()), _Schemas().check)
    first = watched.now().rules.fingerprint

    written(tmp_path, a_rule("another"), file="more.yaml")
    assert _names(watched) == ["another", "paid"]
    written(tmp_path, a_rule(severity="warn"))
    assert watched.now().rules.fingerprint != first
    (tmp_path / "rules.yaml").unlink()
    assert _names(watched) == ["another"]


def test_rules_that_are_broken_leave_those_that_were_good_and_are_told(tmp_path: Path) -> None:
    watched = WatchedRules(written(tmp_path, a_rule()), _Schemas().check)

    written(tmp_path, a_rule("another", "amount >"))
    assert _names(watched) == ["paid"]
    assert "rules.yaml:3: the rule 'another' is no SQL expression" in watched.refused

    written(tmp_path, a_rule("another"))
    assert _names(watched) == ["another"]
    assert watched.refused == ""


def test_a_rule_on_a_column_that_is_yet_to_come_is_taken_when_a_schema_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schemas = _Schemas()
    watched = WatchedRules(written(tmp_path, a_rule()), schemas.check)
    written(tmp_path, a_rule("later", "stars >= 0"))
    assert _names(watched) == ["paid"]

    schemas.columns = pa.schema([*COLUMNS, pa.field("stars", pa.int64())])
    assert _names(watched) == ["paid"]
    monkeypatch.setattr("gamelake.quality.rules_in_force._TRY_AGAIN_SECONDS", 0)
    assert _names(watched) == ["later"]


def test_rules_that_are_broken_at_the_start_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="which no schema has"):
        WatchedRules(written(tmp_path, a_rule(expect="stars >= 0")), _Schemas().check)
