"""Rules that change while a stream runs: valid ones are used, and after invalid ones the last valid ones stay."""

from pathlib import Path

import pyarrow as pa
import pytest

from gamelake.model.errors import ContractError
from gamelake.quality.checking import CheckedRules, check_rules
from gamelake.quality.rules import RuleSet
from gamelake.quality.rules_in_force import WatchedRules
from tests.unit.quality.rules_and_rows import COLUMNS, GAMES, a_rule, written


class _Schemas:
    """What rows are known to have, which may grow."""

    def __init__(self) -> None:
        self.columns = COLUMNS

    def check(self, rules: RuleSet) -> CheckedRules:
        return check_rules(rules, self.columns, GAMES)


def _names(watched: WatchedRules) -> list[str]:
    return [rule.name for rule in watched.now().rules.rules]


def test_added_changed_and_removed_rules_take_effect_at_the_next_reload(tmp_path: Path) -> None:
    watched = WatchedRules(written(tmp_path, a_rule()), _Schemas().check)
    first = watched.now().rules.fingerprint

    written(tmp_path, a_rule("another"), file="more.yaml")
    assert _names(watched) == ["another", "paid"]
    written(tmp_path, a_rule(severity="warn"))
    assert watched.now().rules.fingerprint != first
    (tmp_path / "rules.yaml").unlink()
    assert _names(watched) == ["another"]


def test_invalid_rules_are_reported_and_the_last_valid_ones_stay(tmp_path: Path) -> None:
    watched = WatchedRules(written(tmp_path, a_rule()), _Schemas().check)

    written(tmp_path, a_rule("another", "amount >"))
    assert _names(watched) == ["paid"]
    assert "rules.yaml:3: the rule 'another' is not a SQL expression" in watched.refused

    written(tmp_path, a_rule("another"))
    assert _names(watched) == ["another"]
    assert watched.refused == ""


def test_a_rule_on_a_future_column_takes_effect_when_a_schema_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schemas = _Schemas()
    watched = WatchedRules(written(tmp_path, a_rule()), schemas.check)
    written(tmp_path, a_rule("later", "stars >= 0"))
    assert _names(watched) == ["paid"]

    schemas.columns = pa.schema([*COLUMNS, pa.field("stars", pa.int64())])
    assert _names(watched) == ["paid"]
    monkeypatch.setattr("gamelake.quality.rules_in_force._RETRY_SECONDS", 0)
    assert _names(watched) == ["later"]


def test_invalid_rules_at_the_start_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="which no schema has"):
        WatchedRules(written(tmp_path, a_rule(expect="stars >= 0")), _Schemas().check)
